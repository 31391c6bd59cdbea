//! `llama-tokenize`.

use std::io::Read;

use gguf_tokenizer::{Compat, TokenizerOptions};

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, ignored, renamed, translated};
use super::shared_arguments;
use super::shared_flags::{self, LOG, MACHINE, MODEL, NO_RUN, SAMPLING};
use super::{ArgumentStyle, Program};
use crate::commands::tokenize;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "llama-tokenize",
    command: "gguf tokenize",
    positionals: "",
    style: ArgumentStyle::LlamaCpp,
    example: "-m model.gguf -p \"Hello world\" --ids",
    flags: &[shared_flags::PROGRAM, FLAGS, MODEL, NO_RUN, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    translated("-p --prompt", 1, "`--prompt`"),
    translated("-f --file", 1, "`--file`"),
    translated("-bf --binary-file", 1, "`--file`, without escapes"),
    translated("--stdin", 0, "`--stdin`"),
    translated(
        "-e --escape",
        0,
        "processes escapes such as `\\n`, `\\t` and `\\\"` in the text, the default",
    ),
    translated("--no-escape", 0, "disables escape processing, as in `gguf tokenize`"),
    renamed("--ids", 0, "--ids"),
    renamed("--no-bos", 0, "--no-bos"),
    renamed("--no-parse-special", 0, "--no-parse-special"),
    renamed("--show-count", 0, "--show-count"),
    ignored("-t --threads", 1, "the number of threads is automatic"),
    ignored("--lora", 1, "the program runs no model"),
    ignored("--lora-scaled", 1, "the program runs no model"),
];

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(word) = arguments.positionals.first() {
        return Err(Failure::Usage(format!(
            "unexpected argument `{word}`: use -p or -f for the text"
        )));
    }
    let model = shared_arguments::model(arguments)?;
    let escapes = arguments.last(&["--escape", "--no-escape"]) != Some("--no-escape");
    let text = text(arguments)?;
    let text = if escapes && !arguments.has("--binary-file") { unescape(&text) } else { text };
    let mut flags = vec![format!("--prompt={text}"), "--compat=llama.cpp".to_owned()];
    // The original adds no EOS if the model adds no BOS.
    if !arguments.has("--no-bos") && !adds_bos(&model)? {
        flags.push("--no-bos".to_owned());
    }
    tokenize::run(&parse_args(arguments.translate(flags, [model]))?)?;
    Ok(0)
}

fn adds_bos(model: &str) -> Result<bool, Failure> {
    let options = TokenizerOptions { compat: Compat::LlamaCpp, normalize: None };
    Ok(gguf_kit::tokens::open(model, options)?.0.adds_bos())
}

/// Returns the text from standard input, the file or -p, in this order.
fn text(arguments: &Arguments) -> Result<String, Failure> {
    let cannot = |name: &str, fault| gguf::Error::read(name.as_ref(), fault);
    let mut bytes = Vec::new();
    if arguments.has("--stdin") {
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|fault| cannot("standard input", fault))?;
    } else if let Some(file) = shared_arguments::text(arguments) {
        bytes = std::fs::read(file).map_err(|fault| cannot(file, fault))?;
    } else if let Some(prompt) = arguments.value("--prompt") {
        return Ok(prompt.to_owned());
    } else {
        return Err(Failure::Usage(
            "the text is missing: use --stdin, --file or --prompt".to_owned(),
        ));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|fault| {
        eprintln!("note: the text is not valid UTF-8; invalid bytes become U+FFFD");
        String::from_utf8_lossy(fault.as_bytes()).into_owned()
    }))
}

/// Processes the escapes that llama.cpp supports; others are kept.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = || std::str::from_utf8(bytes.get(at + 2..at + 4)?).ok();
        let known = match (byte, bytes.get(at + 1)) {
            (b'\\', Some(b'n')) => Some((b'\n', 2)),
            (b'\\', Some(b'r')) => Some((b'\r', 2)),
            (b'\\', Some(b't')) => Some((b'\t', 2)),
            (b'\\', Some(same @ (b'\'' | b'"' | b'\\'))) => Some((*same, 2)),
            (b'\\', Some(b'x')) => {
                hex().and_then(|hex| Some((u8::from_str_radix(hex, 16).ok()?, 4)))
            }
            _ => None,
        };
        let (byte, len) = known.unwrap_or((*byte, 1));
        plain.push(byte);
        at += len;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_match_llama_cpp() {
        assert_eq!(unescape(r"a\nb\tc\rd"), "a\nb\tc\rd");
        assert_eq!(unescape(r#"\"\'\\n"#), "\"'\\n");
        assert_eq!(unescape(r"\x41\xc3\xa9\xg"), "Aé\\xg");
        assert_eq!(unescape(r"\q\"), r"\q\");
    }
}
