//! What the bytes of a vocabulary mean: the `tokenizer.*` keys.

use std::collections::HashSet;

use gguf::{Array, Metadata};
use gguf_convert::vocab::{Token, spell};
use gguf_models::token::{self, TokenType, byte_token};

use super::header::{Field, Program};
use super::merges;
use super::read::OldFile;
use super::vocabulary::RawToken;
use super::whisper_tokens;

/// Sets the `tokenizer.*` keys from the file alone, with `pre` for the name of the pre-tokenizer
/// where there is one. Returns what the user should know.
pub(super) fn write(old: &OldFile, pre: &str, metadata: &mut Metadata) -> Vec<String> {
    match old.layout.program {
        Program::Llama => llama(old, metadata),
        Program::Replit => replit(old, metadata),
        _ => byte_level(old, pre, metadata),
    }
}

fn set(metadata: &mut Metadata, model: &'static str, pre: &str, tokens: &[Token]) {
    let texts = Array::from_strings(tokens.iter().map(|token| &token.text));
    metadata.set("tokenizer.ggml.model", model);
    metadata.set("tokenizer.ggml.pre", pre.to_owned());
    metadata.set("tokenizer.ggml.tokens", texts);
}

fn set_scores(metadata: &mut Metadata, tokens: &[Token]) {
    let scores: Vec<f32> = tokens.iter().map(|token| token.score).collect();
    metadata.set("tokenizer.ggml.scores", Array::from(&scores[..]));
}

fn set_types(metadata: &mut Metadata, tokens: &[Token]) {
    let types: Vec<i32> = tokens.iter().map(|token| token.kind.id()).collect();
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
}

fn set_role(metadata: &mut Metadata, role: &str, id: usize) {
    if let Some(key) = token::id_key(role) {
        metadata.set(key, id as u32);
    }
}

/// U+2581, which SentencePiece writes for a space.
const SPACE: &str = "\u{2581}";
/// What a byte that is no text was written as.
const LOST: &str = "\u{FFFD}";

/// LLaMA's SentencePiece model, from which the converters of the time took pieces as plain text.
fn llama(old: &OldFile, metadata: &mut Metadata) -> Vec<String> {
    let raw = &old.vocabulary.tokens;
    let tokens: Vec<_> = raw.iter().enumerate().map(|(id, token)| llama_token(id, token)).collect();
    set(metadata, "llama", "default", &tokens);
    set_scores(metadata, &tokens);
    set_types(metadata, &tokens);
    for (id, role) in ["unk", "bos", "eos"].into_iter().enumerate().take(tokens.len()) {
        set_role(metadata, role, id);
    }
    let has_scores = raw.iter().any(|token| token.score != 0.0);
    let note = "the file has no scores of tokens: text is cut up otherwise than in training; name \
                a folder with the tokenizer with --metadata-dir";
    (!has_scores).then(|| note.to_owned()).into_iter().collect()
}

/// Byte tokens: one per byte, in order.
const BYTES: std::ops::RangeInclusive<usize> = 3..=258;

fn llama_token(id: usize, token: &RawToken) -> Token {
    let text = String::from_utf8_lossy(&token.bytes);
    let (text, kind) = match (id, &token.bytes[..]) {
        (0, _) => ("<unk>".to_owned(), TokenType::Unknown),
        (1, _) => ("<s>".to_owned(), TokenType::Control),
        (2, _) => ("</s>".to_owned(), TokenType::Control),
        (_, []) => (String::new(), TokenType::Control),
        (id, [byte]) if BYTES.contains(&id) => (byte_token(*byte), TokenType::Byte),
        // The first converter could not write single bytes beyond ASCII. Their ids tell them.
        (id, _) if BYTES.contains(&id) && text == LOST => {
            (byte_token((id - BYTES.start()) as u8), TokenType::Byte)
        }
        _ => (text.replace(' ', SPACE), TokenType::Normal),
    };
    Token { text, score: token.score, kind }
}

/// Replit's Unigram model, whose pieces are stored as they are.
fn replit(old: &OldFile, metadata: &mut Metadata) -> Vec<String> {
    let token = |(id, raw): (usize, &RawToken)| {
        let text = String::from_utf8_lossy(&raw.bytes).into_owned();
        let kind = match &*text {
            "" => return Token::padding(id, raw.score),
            "<unk>" => TokenType::Unknown,
            _ if text.starts_with("<|") && text.ends_with("|>") => TokenType::Control,
            _ => TokenType::Normal,
        };
        Token { text, score: raw.score, kind }
    };
    let tokens: Vec<_> = old.vocabulary.tokens.iter().enumerate().map(token).collect();
    set(metadata, "t5", "default", &tokens);
    set_scores(metadata, &tokens);
    set_types(metadata, &tokens);
    roles(&tokens, &[("<|endoftext|>", &["bos", "eos"]), ("<unk>", &["unk"])], metadata);
    Vec::new()
}

/// What a special token is for, by its text.
const ROLES: &[(&str, &[&str])] = &[
    ("<|endoftext|>", &["bos", "eos"]),
    ("<s>", &["bos"]),
    ("</s>", &["eos"]),
    ("<unk>", &["unk"]),
    ("<pad>", &["pad"]),
    ("<|padding|>", &["pad"]),
];

fn roles(tokens: &[Token], roles: &[(&str, &[&str])], metadata: &mut Metadata) {
    for (text, names) in roles {
        let Some(id) = tokens.iter().position(|token| token.text == *text) else { continue };
        for name in *names {
            set_role(metadata, name, id);
        }
    }
}

/// GPT-2's kind of vocabulary, which the converters turned into bytes or text.
fn byte_level(old: &OldFile, pre: &str, metadata: &mut Metadata) -> Vec<String> {
    let program = old.layout.program;
    let rows = old.header.get(Field::Vocabulary).unwrap_or(0) as usize;
    let bytes: Vec<Vec<u8>> =
        old.vocabulary.tokens.iter().map(|token| bytes_of(program, &token.bytes)).collect();
    // Short vocabularies were filled up with their last token (StarCoder, MPT), and converters that
    // wrote decoded text lost bytes. Programs need different texts.
    let mut seen = HashSet::new();
    let mut tokens: Vec<Token> = Vec::new();
    for (id, bytes) in bytes.iter().enumerate() {
        let token = byte_level_token(id, bytes);
        let is_new = seen.insert(token.text.clone());
        tokens.push(if is_new { token } else { Token::padding(id, 0.0) });
    }
    let lost = tokens.iter().filter(|token| token.kind == TokenType::Unused).count();
    if program == Program::Whisper {
        tokens.extend(whisper_tokens::special(&tokens, rows));
    }
    // Rows come from the file's own header, and the embedding is checked against them.
    let named = tokens.len();
    tokens.extend((named..rows).map(|id| Token::padding(id, 0.0)));

    set(metadata, "gpt2", pre, &tokens);
    set_types(metadata, &tokens);
    let mut notes = Vec::new();
    // `None` where they are not known, which is not the same as none.
    let merges = if old.vocabulary.merges.is_empty() {
        let recovered = merges::recover(&bytes, |id| tokens[id].kind == TokenType::Normal);
        notes.push(match &recovered {
            Some(pairs) => format!(
                "the file has no merges: {} were recovered from the order of its tokens; to be \
                 sure, name a folder with the tokenizer with --metadata-dir",
                pairs.len()
            ),
            None => "the file has no merges, and its tokens do not tell them: text cannot be cut \
                     up; name a folder with the tokenizer with --metadata-dir"
                .to_owned(),
        });
        let text = |id: usize| spell(&bytes[id]);
        let spell_pair = |(left, right)| format!("{} {}", text(left), text(right));
        recovered.map(|pairs| pairs.into_iter().map(spell_pair).collect::<Vec<_>>())
    } else {
        let joined = |(left, right): &(Vec<u8>, Vec<u8>)| {
            format!("{} {}", String::from_utf8_lossy(left), String::from_utf8_lossy(right))
        };
        Some(old.vocabulary.merges.iter().map(joined).collect())
    };
    if let Some(merges) = merges {
        metadata.set("tokenizer.ggml.merges", Array::from_strings(&merges));
    }
    if lost + rows > named {
        notes.push(format!("{} of {rows} tokens have no text in the file", lost + rows - named));
    }
    roles(&tokens, ROLES, metadata);
    notes
}

/// The bytes of a token. MPT's converter wrote each byte as the character with its number.
fn bytes_of(program: Program, stored: &[u8]) -> Vec<u8> {
    let characters = || -> Option<Vec<u8>> {
        let text = std::str::from_utf8(stored).ok()?;
        text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
    };
    match program {
        Program::Mpt => characters().unwrap_or_else(|| stored.to_vec()),
        _ => stored.to_vec(),
    }
}

fn byte_level_token(id: usize, bytes: &[u8]) -> Token {
    let special = std::str::from_utf8(bytes).ok().filter(|text| {
        ROLES.iter().any(|(special, _)| special == text)
            || (text.starts_with("<|") && text.ends_with("|>"))
    });
    match special {
        _ if bytes.is_empty() => Token::padding(id, 0.0),
        Some(text) => Token { text: text.to_owned(), score: 0.0, kind: TokenType::Control },
        None => Token { text: spell(bytes), score: 0.0, kind: TokenType::Normal },
    }
}
