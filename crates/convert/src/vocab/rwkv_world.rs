//! The vocabulary of RWKV World, a text file of Python literals.

use gguf::Error;
use gguf_models::token::TokenType;

use super::roles::ROLES;
use super::special::SpecialTokens;
use super::token::{MAX_TOKENS, Token};
use super::{Array, Builder};

/// File name.
pub(crate) const FILE: &str = "rwkv_vocab_v20230424.txt";

/// Id of two line breaks, which end a turn.
const END_OF_TURN: u32 = 261;

/// Name of a chat template that runtimes have built in.
pub(crate) const CHAT_TEMPLATE: &str = "rwkv-world";

impl Builder<'_> {
    pub(super) fn rwkv_world(&mut self) -> Result<(), Error> {
        let tokens = self.rwkv_tokens()?;
        let texts = Array::from_strings(tokens.iter().map(|token| &token.text));
        let types: Vec<i32> = tokens.iter().map(|token| token.kind.id()).collect();
        self.len = tokens.len();
        self.metadata.set("tokenizer.ggml.model", "rwkv");
        self.metadata.set("tokenizer.ggml.tokens", texts);
        self.metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
        let mut special = SpecialTokens::read(&self.files, &ROLES, None, &mut self.notes)?;
        if !special.has("eot") && tokens.len() > END_OF_TURN as usize {
            special.assign("eot", END_OF_TURN);
        }
        // The ids of these in other files are wrong.
        special.assign("bos", 0);
        special.assign("eos", 0);
        special.default_chat_template(CHAT_TEMPLATE);
        special.write(&mut self.metadata);
        Ok(())
    }

    fn rwkv_tokens(&self) -> Result<Vec<Token>, Error> {
        let (path, text) = (self.files.path(FILE), self.files.text(FILE)?);
        let mut tokens =
            vec![Token { text: "<s>".to_owned(), score: 0.0, kind: TokenType::Control }];
        for (number, line) in text.lines().enumerate() {
            let bytes = entry(line).ok_or_else(|| {
                let what = format!("line {} is not `ID LITERAL LENGTH`", number + 1);
                Error::input("vocabulary-damaged", &path, what, "download the file again")
            })?;
            tokens.push(Token { text: escaped(&bytes), score: 0.0, kind: TokenType::Normal });
        }
        let rows = self.options.vocab_size.unwrap_or(tokens.len() as u64);
        if rows < tokens.len() as u64 || rows > MAX_TOKENS {
            let what = format!("has {} tokens for {rows} rows of the embedding", tokens.len());
            return Err(Error::input(
                "vocabulary-other-model",
                &path,
                what,
                "check that the tokenizer belongs to this model",
            ));
        }
        tokens.extend((tokens.len()..rows as usize).map(|id| Token::padding(id, 0.0)));
        Ok(tokens)
    }
}

/// Returns the bytes in a line `ID LITERAL LENGTH`.
fn entry(line: &str) -> Option<Vec<u8>> {
    let (_, rest) = line.split_once(' ')?;
    let (literal, len) = rest.rsplit_once(' ')?;
    let bytes = literal_bytes(literal)?;
    (len.trim().parse() == Ok(bytes.len())).then_some(bytes)
}

/// Returns the bytes of a Python literal: `'text'`, which is UTF-8, or `b'bytes'`.
fn literal_bytes(literal: &str) -> Option<Vec<u8>> {
    let (is_bytes, quoted) = match literal.strip_prefix('b') {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let quote = quoted.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut push = |c: char| {
        if is_bytes {
            bytes.push(u8::try_from(u32::from(c)).ok()?);
        } else {
            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
        }
        Some(())
    };
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        let c = match c {
            '\\' => escape(&mut rest)?,
            other => other,
        };
        push(c)?;
    }
    Some(bytes)
}

/// Parses the escape sequence behind a backslash.
fn escape(rest: &mut std::str::Chars) -> Option<char> {
    let digits = match rest.next()? {
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        'a' => return Some('\x07'),
        'b' => return Some('\x08'),
        'f' => return Some('\x0C'),
        'v' => return Some('\x0B'),
        '0' => return Some('\0'),
        itself @ ('\\' | '\'' | '"') => return Some(itself),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let (code, behind) = rest.as_str().split_at_checked(digits)?;
    let code = code.bytes().all(|b| b.is_ascii_hexdigit()).then_some(code)?;
    *rest = behind.chars();
    char::from_u32(u32::from_str_radix(code, 16).ok()?)
}

/// Returns the bytes of a text from [`escaped`].
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    literal_bytes(&format!("b'{text}'"))
}

/// Escapes bytes as Python does between the quotes of `b'...'`, which is the form in GGUF.
fn escaped(bytes: &[u8]) -> String {
    let has = |quote| bytes.contains(&quote);
    let quote = if has(b'\'') && !has(b'"') { b'"' } else { b'\'' };
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\n' => text.push_str(r"\n"),
            b'\r' => text.push_str(r"\r"),
            b'\t' => text.push_str(r"\t"),
            byte if byte == quote || byte == b'\\' => text.extend(['\\', byte.into()]),
            b' '..=b'~' => text.push(byte.into()),
            other => text += &format!(r"\x{other:02x}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_and_written_as_in_python() {
        for (line, bytes, written) in [
            (r"1 '\x00' 1", &b"\0"[..], r"\x00"),
            (r"3 'a b' 3", b"a b", "a b"),
            (r#"4 "'" 1"#, b"'", "'"),
            (r#"5 '\'"' 2"#, b"'\"", r#"\'""#),
            (r"6 b'\xff\xfe' 2", b"\xff\xfe", r"\xff\xfe"),
            (r"7 '\xff' 2", "\u{FF}".as_bytes(), r"\xc3\xbf"),
            (r"8 '\n\n' 2", b"\n\n", r"\n\n"),
            (r"9 '\\' 1", b"\\", r"\\"),
            (r"10 '\u4e2d' 3", "\u{4E2D}".as_bytes(), r"\xe4\xb8\xad"),
            ("11 '\u{4E2D}' 3", "\u{4E2D}".as_bytes(), r"\xe4\xb8\xad"),
            (r"12 ' ' 1", b" ", " "),
        ] {
            let found = entry(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(found, bytes, "{line}");
            assert_eq!(escaped(&found), written, "{line}");
        }
        for line in
            ["", "1", "1 'a'", "1 'a' 2", "1 'a 1", r"1 '\x' 1", r"1 '\q' 1", "1 b'\u{4E2D}' 3"]
        {
            assert_eq!(entry(line), None, "{line}");
        }
    }
}
