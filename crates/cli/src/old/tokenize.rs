//! `llama-tokenize`.

use std::io::Read;

use gguf_tokenizer::{Compat, TokenizerOptions};

use super::common::{self, IDLE, LOG, MACHINE, MODEL, SAMPLING};
use super::flag::{Flag, nothing, ours, read};
use super::given::{Given, args_of};
use super::{Family, Program};
use crate::commands::tokenize;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "llama-tokenize",
    ours: "gguf tokenize",
    words: "",
    family: Family::LlamaCpp,
    example: "-m model.gguf -p \"Hello world\" --ids",
    flags: &[common::PROGRAM, FLAGS, MODEL, IDLE, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    read("-p --prompt", 1, "`--prompt`"),
    read("-f --file", 1, "`--file`"),
    read("-bf --binary-file", 1, "`--file`, without escapes"),
    read("--stdin", 0, "`--stdin`"),
    read(
        "-e --escape",
        0,
        "replaces `\\n`, `\\t`, `\\\"` and the like in the text, which is usual",
    ),
    read("--no-escape", 0, "leaves the text as it is, as `gguf tokenize` does"),
    ours("--ids", 0, "--ids"),
    ours("--no-bos", 0, "--no-bos"),
    ours("--no-parse-special", 0, "--no-parse-special"),
    ours("--show-count", 0, "--show-count"),
    nothing("-t --threads", 1, "short texts take one thread, long ones all"),
    nothing("--lora", 1, "no model is run"),
    nothing("--lora-scaled", 1, "no model is run"),
];

fn run(given: &Given) -> Result<u8, Failure> {
    if let Some(word) = given.words.first() {
        return Err(Failure::Usage(format!("`{word}` is no flag: give the text with -p or -f")));
    }
    let model = common::model(given)?;
    let escapes = given.last(&["--escape", "--no-escape"]) != Some("--no-escape");
    let text = text(given)?;
    let text = if escapes && !given.has("--binary-file") { unescaped(&text) } else { text };
    let mut flags = vec![format!("--prompt={text}"), "--compat=llama.cpp".to_owned()];
    // The original adds nothing at the end of a text either if the model wants nothing before it.
    if !given.has("--no-bos") && !adds_first(&model)? {
        flags.push("--no-bos".to_owned());
    }
    tokenize::run(&args_of(given.ours(flags, [model]))?)?;
    Ok(0)
}

fn adds_first(model: &str) -> Result<bool, Failure> {
    let options = TokenizerOptions { compat: Compat::LlamaCpp, normalize: None };
    Ok(gguf_kit::tokens::open(model, options)?.0.adds_bos())
}

/// The standard input, else the file, else the text of `-p`.
fn text(given: &Given) -> Result<String, Failure> {
    let cannot = |name: &str, fault| gguf::Error::read(name.as_ref(), fault);
    let mut bytes = Vec::new();
    if given.has("--stdin") {
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|fault| cannot("the standard input", fault))?;
    } else if let Some(file) = common::text(given) {
        bytes = std::fs::read(file).map_err(|fault| cannot(file, fault))?;
    } else if let Some(prompt) = given.value("--prompt") {
        return Ok(prompt.to_owned());
    } else {
        return Err(Failure::Usage("which text? Give --stdin, --file or --prompt".to_owned()));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|fault| {
        eprintln!("note: the text is not all UTF-8: what is not becomes U+FFFD");
        String::from_utf8_lossy(fault.as_bytes()).into_owned()
    }))
}

/// The text with the escapes replaced that llama.cpp replaces: others stay.
fn unescaped(text: &str) -> String {
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
    fn escapes_are_those_of_llama_cpp() {
        assert_eq!(unescaped(r"a\nb\tc\rd"), "a\nb\tc\rd");
        assert_eq!(unescaped(r#"\"\'\\n"#), "\"'\\n");
        assert_eq!(unescaped(r"\x41\xc3\xa9\xg"), "Aé\\xg");
        assert_eq!(unescaped(r"\q\"), r"\q\");
    }
}
