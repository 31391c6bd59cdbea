//! The special tokens of Whisper, which legacy files do not store.

use gguf_convert::vocab::Token;
use gguf_models::token::TokenType;

/// Languages, in the order of their tokens; `large-v3` added the last one.
const LANGUAGES: &str = "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro \
                         da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu \
                         is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo \
                         uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue";

/// Number of timestamp tokens: 0 to 30 seconds in steps of 0.02.
const TIMESTAMPS: usize = 1501;

/// The tokens that follow those of `stored`, up to `rows` tokens; none if the count does not match
/// a Whisper vocabulary.
pub(super) fn special(stored: &[Token], rows: usize) -> Vec<Token> {
    const BEFORE: [&str; 2] = ["endoftext", "startoftranscript"];
    const AFTER: [&str; 6] =
        ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"];
    // Some files store the first one.
    let has_end = stored.last().is_some_and(|token| token.text == "<|endoftext|>");
    let before = BEFORE.iter().skip(has_end.into());
    let others = before.len() + AFTER.len() + TIMESTAMPS;
    let Some(languages) = rows.checked_sub(stored.len() + others) else { return Vec::new() };
    let known = LANGUAGES.split(' ').count();
    if !(1..=known).contains(&languages) {
        return Vec::new();
    }
    let control = |text: &str| token(text, TokenType::Control);
    let timestamp =
        |step| token(&format!("{}.{:02}", step / 50, step % 50 * 2), TokenType::UserDefined);
    let named = before.copied().chain(LANGUAGES.split(' ').take(languages)).chain(AFTER);
    named.map(control).chain((0..TIMESTAMPS).map(timestamp)).collect()
}

fn token(text: &str, kind: TokenType) -> Token {
    Token { text: format!("<|{text}|>"), score: 0.0, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(count: usize) -> Vec<Token> {
        (0..count).map(|id| Token::padding(id, 0.0)).collect()
    }

    /// Ids from `whisper.tokenizer` by OpenAI.
    #[test]
    fn special_token_ids_match_whisper() {
        let english_only = (50256, 51864, "su", 50361, 50363);
        let multilingual = (50257, 51865, "su", 50362, 50364);
        let large_v3 = (50257, 51866, "yue", 50363, 50365);
        for (count, rows, last, no_speech, first_time) in [english_only, multilingual, large_v3] {
            let added = special(&stored(count), rows);
            assert_eq!(count + added.len(), rows);
            let text = |id: usize| added[id - count].text.clone();
            assert_eq!(text(count), "<|endoftext|>");
            assert_eq!(text(count + 2), "<|en|>");
            assert_eq!(text(count + 4), "<|de|>");
            assert_eq!(text(no_speech - 5), format!("<|{last}|>"));
            assert_eq!(text(no_speech), "<|nospeech|>");
            assert_eq!(text(no_speech + 1), "<|notimestamps|>");
            assert_eq!(text(first_time), "<|0.00|>");
            assert_eq!(text(first_time + 51), "<|1.02|>");
            assert_eq!(text(rows - 1), "<|30.00|>");
        }
    }

    #[test]
    fn the_first_special_token_can_be_stored() {
        let mut tokens = stored(50256);
        tokens.push(token("endoftext", TokenType::Control));
        let added = special(&tokens, 51864);
        assert_eq!(added.first().unwrap().text, "<|startoftranscript|>");
        assert_eq!(added.len(), 51864 - 50257);
    }

    #[test]
    fn other_token_counts_add_no_tokens() {
        for rows in [600, 1200, 50257 + 1509, 50257 + 1509 + 101] {
            assert!(special(&stored(50257), rows).is_empty(), "{rows}");
        }
    }
}
