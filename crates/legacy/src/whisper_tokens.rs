//! The special tokens of Whisper, which its old files leave to the program that runs them.

use gguf_convert::vocab::Token;
use gguf_models::token::TokenType;

/// Languages, in the order in which models count them; the last one came with the third large model.
const LANGUAGES: &str = "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro \
                         da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu \
                         is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo \
                         uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue";

/// Times from 0 to 30 seconds, a fiftieth apart.
const TIMES: usize = 1501;

/// The tokens that follow the last one of `stored`, in a model of so many; none if they are not as many
/// as a Whisper has.
pub(super) fn special(stored: &[Token], rows: usize) -> Vec<Token> {
    const BEFORE: [&str; 2] = ["endoftext", "startoftranscript"];
    const AFTER: [&str; 6] =
        ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"];
    // Some files have the first of them.
    let has_end = stored.last().is_some_and(|token| token.text == "<|endoftext|>");
    let before = BEFORE.iter().skip(has_end.into());
    let others = before.len() + AFTER.len() + TIMES;
    let Some(languages) = rows.checked_sub(stored.len() + others) else { return Vec::new() };
    let known = LANGUAGES.split(' ').count();
    if !(1..=known).contains(&languages) {
        return Vec::new();
    }
    let control = |text: &str| token(text, TokenType::Control);
    let time = |step| token(&format!("{}.{:02}", step / 50, step % 50 * 2), TokenType::UserDefined);
    let named = before.copied().chain(LANGUAGES.split(' ').take(languages)).chain(AFTER);
    named.map(control).chain((0..TIMES).map(time)).collect()
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

    /// The ids of `whisper.tokenizer` of Whisper's authors.
    #[test]
    fn tokens_are_where_models_have_them() {
        let english = (50256, 51864, "su", 50361, 50363);
        let many = (50257, 51865, "su", 50362, 50364);
        let third = (50257, 51866, "yue", 50363, 50365);
        for (count, rows, last, no_speech, first_time) in [english, many, third] {
            let made = special(&stored(count), rows);
            assert_eq!(count + made.len(), rows);
            let text = |id: usize| made[id - count].text.clone();
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
    fn a_file_may_have_the_first_one() {
        let mut tokens = stored(50256);
        tokens.push(token("endoftext", TokenType::Control));
        let made = special(&tokens, 51864);
        assert_eq!(made.first().unwrap().text, "<|startoftranscript|>");
        assert_eq!(made.len(), 51864 - 50257);
    }

    #[test]
    fn other_numbers_are_no_whisper() {
        for rows in [600, 1200, 50257 + 1509, 50257 + 1509 + 101] {
            assert!(special(&stored(50257), rows).is_empty(), "{rows}");
        }
    }
}
