//! RWKV World tokenizer: greedy longest match, byte by byte.

use gguf::{Array, Error, Metadata};
use gguf_models::token::TokenType;

use crate::error::invalid;
use crate::model::Model;
use crate::options::{Compat, TokenizerOptions};
use crate::token_table::TokenTable;
use crate::trie::Trie;
use crate::vocabulary::{MODEL, TOKENS, TYPES, Vocabulary};

/// Key of the vocabulary in its published form: a line `id literal length` for each token, with a
/// Python literal.
const WORLD: &str = "tokenizer.rwkv.world";

/// Vocabulary as a trie.
pub(crate) struct Rwkv {
    trie: Trie,
    texts: TokenTable,
    unknown: Option<u32>,
}

impl Rwkv {
    /// # Errors
    /// If a token exceeds the maximum length.
    pub fn read(vocabulary: &Vocabulary<'_>, options: TokenizerOptions) -> Result<Self, Error> {
        let texts: TokenTable = vocabulary.tokens.iter().map(|token| unescape(token)).collect();
        // Control tokens and padding of the vocabulary do not match text; in llama.cpp they do.
        let is_text = |kind: &TokenType| {
            !matches!(kind, TokenType::Control | TokenType::Unused)
                || options.compat == Compat::LlamaCpp
        };
        let tokens = texts.iter().zip(0..).zip(&vocabulary.types);
        let trie = Trie::new(tokens.filter(|(_, kind)| is_text(kind)).map(|(token, _)| token))?;
        Ok(Self { trie, texts, unknown: vocabulary.special_id("unk", None)? })
    }
}

impl Model for Rwkv {
    fn encode(&self, text: &str, _at_start: bool, out: &mut Vec<u32>) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (len, id) = match self.trie.longest(rest) {
                Some((len, id)) => (len, Some(id)),
                // Unreachable with the published vocabulary, which has every byte.
                None => (1, self.unknown),
            };
            out.extend(id);
            rest = rest.get(len..).unwrap_or_default();
        }
    }

    fn decode(&self, id: u32, _at_start: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(self.texts.get(id).unwrap_or_default());
    }
}

/// Returns the metadata with `tokenizer.ggml.tokens` built from the published text; `None` if the
/// tokens exist already, or there is no such text.
///
/// # Errors
/// If the text is malformed.
pub(crate) fn with_tokens(metadata: &Metadata) -> Result<Option<Metadata>, Error> {
    let Some(world) = metadata.get(WORLD).filter(|_| metadata.get(TOKENS).is_none()) else {
        return Ok(None);
    };
    let world = world.as_str().ok_or_else(|| invalid(WORLD, "is not a text"))?;
    let tokens = parse_world(world)?;
    let types: Vec<i32> = tokens.iter().map(|token| if token.is_empty() { 5 } else { 1 }).collect();
    let mut metadata = metadata.clone();
    metadata.set(MODEL, "rwkv");
    metadata.set(TOKENS, Array::from_strings(tokens.iter().map(|t| t.escape_ascii().to_string())));
    metadata.set(TYPES, Array::from(&types[..]));
    Ok(Some(metadata))
}

/// Parses the published text; ids without a line have no bytes.
fn parse_world(world: &str) -> Result<Vec<Vec<u8>>, Error> {
    let mut tokens: Vec<Vec<u8>> = Vec::new();
    for (number, line) in (1..).zip(world.lines()) {
        let fault = |what: &str| invalid(WORLD, format!("line {number} {what}"));
        let parts = line.split_once(' ').and_then(|(id, rest)| {
            let (literal, len) = rest.rsplit_once(' ')?;
            Some((id.parse::<usize>().ok()?, literal, len.parse::<usize>().ok()?))
        });
        let (id, literal, len) =
            parts.ok_or_else(|| fault("is not an id, a literal and a length"))?;
        // The length of the file bounds the ids.
        if id > world.len() {
            return Err(fault("has an id that is too large"));
        }
        let token = python_literal(literal).ok_or_else(|| fault("has no valid literal"))?;
        if token.len() != len {
            let what = format!("has a token of {} bytes, but states {len}", token.len());
            return Err(fault(&what));
        }
        if tokens.len() <= id {
            tokens.resize(id + 1, Vec::new());
        }
        if let Some(place) = tokens.get_mut(id) {
            *place = token;
        }
    }
    Ok(tokens)
}

/// Parses a literal `'...'`, `"..."` or `b'...'`; a string becomes UTF-8.
fn python_literal(literal: &str) -> Option<Vec<u8>> {
    let (is_bytes, quoted) = match literal.strip_prefix('b') {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let quote = quoted.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let body = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut bytes = Vec::with_capacity(body.len());
    let mut chars = body.chars();
    while let Some(char) = chars.next() {
        let value = if char != '\\' {
            char as u32
        } else {
            let digits = match chars.next()? {
                'n' => Err('\n'),
                'r' => Err('\r'),
                't' => Err('\t'),
                'a' => Err('\u{7}'),
                'b' => Err('\u{8}'),
                'f' => Err('\u{c}'),
                'v' => Err('\u{b}'),
                other @ ('\\' | '\'' | '"') => Err(other),
                'x' => Ok(2),
                'u' if !is_bytes => Ok(4),
                'U' if !is_bytes => Ok(8),
                _ => return None,
            };
            match digits {
                Err(char) => char as u32,
                Ok(count) => {
                    let digits = chars.as_str().get(..count)?;
                    chars = chars.as_str().get(count..)?.chars();
                    u32::from_str_radix(digits, 16).ok()?
                }
            }
        };
        if is_bytes {
            bytes.push(u8::try_from(value).ok()?);
        } else {
            let mut buffer = [0; 4];
            bytes.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut buffer).as_bytes());
        }
    }
    Some(bytes)
}

/// Decodes a token as converters write it: the content of a Python bytes literal. Invalid escapes
/// are kept.
fn unescape(token: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (value, len) = match after {
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b'x', high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 3),
                _ => (b'x', 1),
            },
            [other, ..] => (*other, 1),
            [] => (b'\\', 0),
        };
        bytes.push(value);
        rest = after.get(len..).unwrap_or_default();
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_python_literals() {
        let literals: [(&str, Option<&[u8]>); 12] = [
            ("'a b'", Some(b"a b")),
            ("\"it's\"", Some(b"it's")),
            (r"'\n\t\r\\\''", Some(b"\n\t\r\\'")),
            (r"'\x00\xe9'", Some("\0é".as_bytes())),
            (r"b'\xe9\xff'", Some(b"\xe9\xff")),
            (r"'\u4f60\U0001f600'", Some("你😀".as_bytes())),
            ("'你'", Some("你".as_bytes())),
            ("b'你'", None),
            (r"'\ud800'", None),
            (r"'\x4'", None),
            ("'a", None),
            ("a", None),
        ];
        for (literal, expected) in literals {
            assert_eq!(python_literal(literal).as_deref(), expected, "{literal}");
        }
    }

    #[test]
    fn byte_escapes_round_trip() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unescape(all.escape_ascii().to_string().as_bytes()), all);
        assert_eq!(unescape(br"\q\xg1\"), b"qxg1\\");
    }
}
