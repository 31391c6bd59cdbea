//! `gguf detokenize`: decodes token ids.

use std::io::{IsTerminal, Read, Write};

use gguf_tokenizer::DecodeOptions;
use serde_json::json;

use crate::failure::Failure;
use crate::tokenizer_compat::TokenizerCompat;
use crate::{document, terminal, text_input};

/// Decode token ids to text.
#[derive(clap::Args)]
#[command(after_help = "Prints the bytes of the tokens, followed by a newline.\n\n\
                        Examples:\n  gguf detokenize model.gguf 15043 3186\n  \
                        gguf tokenize model.gguf -p hello --ids | gguf detokenize model.gguf")]
pub struct Args {
    /// Model, directory with tokenizer files, or tokenizer.json.
    source: String,
    /// Token ids, separated by spaces or as a JSON list [default: read from standard input].
    ids: Vec<String>,
    /// Also print control tokens.
    #[arg(long)]
    special: bool,
    /// Print the text as JSON; bytes that are not UTF-8 become U+FFFD.
    #[arg(long)]
    json: bool,
    /// Tokenizer behavior where llama.cpp differs from the model's original tokenizer.
    #[arg(long, value_enum, default_value_t = TokenizerCompat::Own)]
    compat: TokenizerCompat,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let tokenizer = args.compat.open(&args.source)?;
    let mut text = args.ids.join(" ");
    if args.ids.is_empty() {
        std::io::stdin().read_to_string(&mut text).map_err(|fault| {
            Failure::Environment(format!("cannot read standard input: {fault}"))
        })?;
    }
    let ids = text_input::ids(&text)
        .map(|id| match id {
            Ok(id) if (id as usize) < tokenizer.len() => Ok(id),
            Ok(id) => Err(Failure::Usage(format!(
                "token id {id} is out of range; ids range from 0 to {}",
                tokenizer.len().saturating_sub(1)
            ))),
            Err(fault) => Err(fault),
        })
        .collect::<Result<Vec<u32>, _>>()?;
    let bytes = tokenizer.decode(&ids, DecodeOptions { special: args.special });
    let mut out = std::io::stdout().lock();
    if args.json {
        let text = String::from_utf8_lossy(&bytes);
        return Ok(document::print(&mut out, "detokenize/1", json!({ "ids": ids, "text": text }))?);
    }
    if out.is_terminal() {
        out.write_all(terminal::printable(&String::from_utf8_lossy(&bytes)).as_bytes())?;
    } else {
        out.write_all(&bytes)?;
    }
    Ok(writeln!(out)?)
}
