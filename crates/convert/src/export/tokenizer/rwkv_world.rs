//! Vocabulary file of RWKV World: Python literals.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{File, Tokenizer, Vocabulary};
use crate::vocab::{RWKV_WORLD, unescape};

pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, config: &mut Map<String, Value>) {
    let mut text = String::new();
    let mut odd = 0;
    // The first token has no line in the file.
    for (id, token) in vocabulary.without_padding(0.0).iter().enumerate().skip(1) {
        let bytes = unescape(token.text).unwrap_or_else(|| {
            odd += 1;
            token.text.as_bytes().to_vec()
        });
        // Writing to a string does not fail.
        let _ = writeln!(text, "{id} {} {}", literal(&bytes), bytes.len());
    }
    if odd > 0 {
        out.notes.push(format!("{odd} tokens are not valid Python literals"));
    }
    out.files.push(File { name: RWKV_WORLD, bytes: text.into_bytes() });
    vocabulary.set_flags(config);
}

/// Returns a Python literal: a string if the bytes are UTF-8, else bytes.
fn literal(bytes: &[u8]) -> String {
    let has = |quote: u8| bytes.contains(&quote);
    let quote = if has(b'\'') && !has(b'"') { '"' } else { '\'' };
    let text = std::str::from_utf8(bytes);
    let mut out = String::from(if text.is_ok() { "" } else { "b" });
    out.push(quote);
    match text {
        Ok(text) => text.chars().for_each(|c| push(&mut out, c, quote)),
        Err(_) => bytes.iter().for_each(|&byte| match byte {
            0x80.. => out += &format!(r"\x{byte:02x}"),
            byte => push(&mut out, byte.into(), quote),
        }),
    }
    out.push(quote);
    out
}

fn push(out: &mut String, c: char, quote: char) {
    match (c, u32::from(c)) {
        ('\n', _) => out.push_str(r"\n"),
        ('\r', _) => out.push_str(r"\r"),
        ('\t', _) => out.push_str(r"\t"),
        ('\\', _) => out.push_str(r"\\"),
        (c, _) if c == quote => out.extend(['\\', c]),
        (_, code @ (..0x20 | 0x7F..=0xA0 | 0xAD)) => *out += &format!(r"\x{code:02x}"),
        // Line breaks and whitespace.
        (c, code) if c.is_whitespace() && c != ' ' => *out += &format!(r"\u{code:04x}"),
        (c, _) => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_written_as_in_the_file() {
        for (bytes, written) in [
            (&b"\0"[..], r"'\x00'"),
            (b"a b", "'a b'"),
            (b"'", r#""'""#),
            (b"'\"", r#"'\'"'"#),
            (b"\"", r#"'"'"#),
            (b"\\\n", r"'\\\n'"),
            (b"\xFF~'", r#"b"\xff~'""#),
            ("\u{4E2D}\u{3000}\u{AD}".as_bytes(), "'\u{4E2D}\\u3000\\xad'"),
        ] {
            assert_eq!(literal(bytes), written);
        }
    }
}
