//! `gguf detokenize`: token ids to text.

use std::io::{Read, Write};

use gguf_tokenizer::DecodeOptions;

use crate::compat::Compat;
use crate::failure::Failure;
use crate::words;

/// Print the text of token ids.
#[derive(clap::Args)]
#[command(after_help = "Prints the bytes that the tokens stand for, and a line break.\n\n\
                        Examples:\n  gguf detokenize model.gguf 15043 3186\n  \
                        gguf tokenize model.gguf -p hello --ids | gguf detokenize model.gguf")]
pub struct Args {
    /// The model; or a directory with tokenizer files, or a tokenizer.json.
    source: String,
    /// The ids, apart or as a list; from the standard input if there are none.
    ids: Vec<String>,
    /// Print the texts of control tokens too.
    #[arg(long)]
    special: bool,
    /// Whom to follow where the model's own tokenizer and llama.cpp differ.
    #[arg(long, value_enum, default_value_t = Compat::Own)]
    compat: Compat,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let tokenizer = args.compat.open(&args.source)?;
    let mut text = args.ids.join(" ");
    if args.ids.is_empty() {
        std::io::stdin().read_to_string(&mut text).map_err(|fault| {
            Failure::Environment(format!("cannot read the standard input: {fault}"))
        })?;
    }
    let ids = words::ids(&text)
        .map(|id| match id {
            Ok(id) if (id as usize) < tokenizer.len() => Ok(id),
            Ok(id) => Err(Failure::Usage(format!(
                "there is no token {id}: ids go from 0 to {}",
                tokenizer.len().saturating_sub(1)
            ))),
            Err(fault) => Err(fault),
        })
        .collect::<Result<Vec<u32>, _>>()?;
    let mut out = std::io::stdout().lock();
    out.write_all(&tokenizer.decode(&ids, DecodeOptions { special: args.special }))?;
    Ok(writeln!(out)?)
}
