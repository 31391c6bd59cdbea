//! The `tokenizer.*` keys of a legacy vocabulary.

use std::collections::HashSet;

use gguf::{Array, Metadata};
use gguf_convert::vocab::{Token, spell};
use gguf_models::token;
use gguf_models::token::{TokenType, byte_token};

use super::file::LegacyFile;
use super::header::{Field, ModelFamily};
use super::vocabulary::RawToken;
use super::{merges, whisper_tokens};

/// Sets the `tokenizer.*` keys from the file alone; `pre` names the pre-tokenizer of a byte-level
/// vocabulary. Returns notes for the user.
pub(super) fn write(file: &LegacyFile, pre: &str, metadata: &mut Metadata) -> Vec<String> {
    match file.layout.family {
        ModelFamily::Llama => llama(file, metadata),
        ModelFamily::Replit => replit(file, metadata),
        _ => byte_level(file, pre, metadata),
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

/// U+2581, which SentencePiece uses for a space.
const SPACE: &str = "\u{2581}";
/// U+FFFD, which replaced bytes that are not valid UTF-8.
const REPLACEMENT: &str = "\u{FFFD}";

/// LLaMA's SentencePiece model; legacy converters stored its pieces as plain text.
fn llama(file: &LegacyFile, metadata: &mut Metadata) -> Vec<String> {
    let raw = &file.vocabulary.tokens;
    let tokens: Vec<_> = raw.iter().enumerate().map(|(id, token)| llama_token(id, token)).collect();
    set(metadata, "llama", "default", &tokens);
    set_scores(metadata, &tokens);
    set_types(metadata, &tokens);
    for (id, role) in ["unk", "bos", "eos"].into_iter().enumerate().take(tokens.len()) {
        set_role(metadata, role, id);
    }
    let has_scores = raw.iter().any(|token| token.score != 0.0);
    let note = "the file has no token scores, so text is tokenized differently than in training; \
                pass a folder with the tokenizer with --metadata-dir";
    (!has_scores).then(|| note.to_owned()).into_iter().collect()
}

/// Ids of the byte tokens, in byte order.
const BYTES: std::ops::RangeInclusive<usize> = 3..=258;

fn llama_token(id: usize, token: &RawToken) -> Token {
    let text = String::from_utf8_lossy(&token.bytes);
    let (text, kind) = match (id, &token.bytes[..]) {
        (0, _) => ("<unk>".to_owned(), TokenType::Unknown),
        (1, _) => ("<s>".to_owned(), TokenType::Control),
        (2, _) => ("</s>".to_owned(), TokenType::Control),
        (_, []) => (String::new(), TokenType::Control),
        (id, [byte]) if BYTES.contains(&id) => (byte_token(*byte), TokenType::Byte),
        // The first converter could not write single bytes outside ASCII; the id gives the byte.
        (id, _) if BYTES.contains(&id) && text == REPLACEMENT => {
            (byte_token((id - BYTES.start()) as u8), TokenType::Byte)
        }
        _ => (text.replace(' ', SPACE), TokenType::Normal),
    };
    Token { text, score: token.score, kind }
}

/// Replit's Unigram model, whose pieces are stored unchanged.
fn replit(file: &LegacyFile, metadata: &mut Metadata) -> Vec<String> {
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
    let tokens: Vec<_> = file.vocabulary.tokens.iter().enumerate().map(token).collect();
    set(metadata, "t5", "default", &tokens);
    set_scores(metadata, &tokens);
    set_types(metadata, &tokens);
    roles(&tokens, &[("<|endoftext|>", &["bos", "eos"]), ("<unk>", &["unk"])], metadata);
    Vec::new()
}

/// Roles of special tokens, by their text.
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

/// A byte-level BPE vocabulary, stored as bytes or text.
fn byte_level(file: &LegacyFile, pre: &str, metadata: &mut Metadata) -> Vec<String> {
    let family = file.layout.family;
    let rows = file.header.get(Field::VocabSize).unwrap_or(0) as usize;
    let bytes: Vec<Vec<u8>> =
        file.vocabulary.tokens.iter().map(|token| bytes_of(family, &token.bytes)).collect();
    // Short vocabularies were padded with their last token (StarCoder, MPT), and converters that
    // wrote decoded text lost bytes. Token texts must be unique.
    let mut seen = HashSet::new();
    let mut tokens: Vec<Token> = Vec::new();
    for (id, bytes) in bytes.iter().enumerate() {
        let token = byte_level_token(id, bytes);
        let is_new = seen.insert(token.text.clone());
        tokens.push(if is_new { token } else { Token::padding(id, 0.0) });
    }
    let lost = tokens.iter().filter(|token| token.kind == TokenType::Unused).count();
    if family == ModelFamily::Whisper {
        tokens.extend(whisper_tokens::special(&tokens, rows));
    }
    // The number of rows comes from the header, and the embedding was checked against it.
    let named = tokens.len();
    tokens.extend((named..rows).map(|id| Token::padding(id, 0.0)));

    set(metadata, "gpt2", pre, &tokens);
    set_types(metadata, &tokens);
    let mut notes = Vec::new();
    // `None` if the merges are unknown, which differs from an empty list.
    let merges = if file.vocabulary.merges.is_empty() {
        let recovered = merges::recover(&bytes, |id| tokens[id].kind == TokenType::Normal);
        notes.push(match &recovered {
            Some(pairs) => format!(
                "the file has no merges: {} were recovered from the token order; to use the original \
                 ones, pass a folder with the tokenizer with --metadata-dir",
                pairs.len()
            ),
            None => "the file has no merges, and they cannot be recovered from the token order: text \
                     cannot be tokenized; pass a folder with the tokenizer with --metadata-dir"
                .to_owned(),
        });
        let text = |id: usize| spell(&bytes[id]);
        let spell_pair = |(left, right)| format!("{} {}", text(left), text(right));
        recovered.map(|pairs| pairs.into_iter().map(spell_pair).collect::<Vec<_>>())
    } else {
        let joined = |(left, right): &(Vec<u8>, Vec<u8>)| {
            format!("{} {}", String::from_utf8_lossy(left), String::from_utf8_lossy(right))
        };
        Some(file.vocabulary.merges.iter().map(joined).collect())
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

/// The bytes of a token. MPT's converter wrote each byte as the character with that code point.
fn bytes_of(family: ModelFamily, stored: &[u8]) -> Vec<u8> {
    let characters = || -> Option<Vec<u8>> {
        let text = std::str::from_utf8(stored).ok()?;
        text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
    };
    match family {
        ModelFamily::Mpt => characters().unwrap_or_else(|| stored.to_vec()),
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
