//! `gguf tokenize`: tokenizes text, in the output format of `llama-tokenize`.

use std::io::{BufRead, Cursor, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use gguf_kit::Error;
use gguf_kit::tokens::Encoder;
use gguf_tokenizer::EncodeOptions;
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::tokenizer_compat::TokenizerCompat;

/// Tokenize text.
#[derive(clap::Args)]
#[command(
    after_help = "The text is used unchanged: no trimming, no escape processing. Invalid UTF-8 becomes U+FFFD.\n\n\
                  Examples:\n  gguf tokenize model.gguf \"Hello world\"\n  \
                  gguf tokenize model.gguf -f prompt.txt --ids\n  \
                  cat lines.jsonl | gguf tokenize model.gguf --stdin --jsonl > ids.jsonl"
)]
pub struct Args {
    /// Model, directory with tokenizer files, or tokenizer.json. The rules of a tokenizer.json apply in full; a
    /// conversion notes those that GGUF cannot hold.
    source: String,
    #[command(flatten)]
    text: Text,
    /// Print only the ids, as a JSON list.
    #[arg(long, conflicts_with = "jsonl")]
    ids: bool,
    /// Print ids and texts of the tokens as JSON.
    #[arg(long, conflicts_with_all = ["ids", "show_count", "jsonl"])]
    json: bool,
    /// Do not add BOS or EOS tokens.
    #[arg(long)]
    no_bos: bool,
    /// Treat special tokens as plain text.
    #[arg(long)]
    no_parse_special: bool,
    /// Also print the number of tokens.
    #[arg(long, conflicts_with = "jsonl")]
    show_count: bool,
    /// Read one JSON string per line; print one JSON array of ids per line.
    #[arg(long)]
    jsonl: bool,
    /// Tokenizer behavior where llama.cpp differs from the model's original tokenizer.
    #[arg(long, value_enum, default_value_t = TokenizerCompat::Own)]
    compat: TokenizerCompat,
    /// Use the tokenizer.json embedded in the file as `tokenizer.huggingface.json`.
    #[arg(long, conflicts_with = "compat", help_heading = "Advanced")]
    huggingface: bool,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Text {
    /// Text [default: standard input].
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
    /// Text.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Text file; `-` for standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Read the text from standard input.
    #[arg(long)]
    stdin: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let tokenizer = if args.huggingface {
        Encoder::huggingface(&args.source)?
    } else {
        args.compat.encoder(&args.source)?
    };
    let options =
        EncodeOptions { add_special: !args.no_bos, parse_special: !args.no_parse_special };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.jsonl {
        jsonl(&tokenizer, options, args.text.lines()?, &mut out)?;
    } else {
        let ids = tokenizer.encode_batch(&[args.text.read()?], options)?.pop().unwrap_or_default();
        if args.json {
            let token = |id: &u32| {
                let text = tokenizer.token_bytes(*id);
                json!({ "id": id, "text": String::from_utf8_lossy(&text) })
            };
            let tokens: Vec<_> = ids.iter().map(token).collect();
            document::print(&mut out, "tokens/1", json!({ "tokens": tokens }))?;
        } else if args.ids {
            print_list(&ids, &mut out)?;
        } else {
            for id in &ids {
                write!(out, "{id:6} -> '")?;
                out.write_all(&tokenizer.token_bytes(*id))?;
                writeln!(out, "'")?;
            }
        }
        if args.show_count {
            writeln!(out, "Total number of tokens: {}", ids.len())?;
        }
    }
    Ok(out.flush()?)
}

impl Text {
    fn read(&self) -> Result<String, Failure> {
        if let Some(text) = self.given() {
            return Ok(text);
        }
        let mut bytes = Vec::new();
        self.lines()?.read_to_end(&mut bytes).map_err(|fault| self.cannot_read(fault))?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(fault) => {
                crate::terminal::note("the text is not valid UTF-8; invalid bytes become U+FFFD");
                String::from_utf8_lossy(fault.as_bytes()).into_owned()
            }
        })
    }

    /// Returns the text of the command line, if any.
    fn given(&self) -> Option<String> {
        let words = (!self.words.is_empty()).then(|| self.words.join(" "));
        self.prompt.clone().or(words)
    }

    /// Returns the text as a stream.
    fn lines(&self) -> Result<Box<dyn BufRead + '_>, Failure> {
        Ok(match (self.given(), &self.file) {
            (Some(text), _) => Box::new(Cursor::new(text)),
            (_, Some(file)) if file != Path::new("-") => {
                let file = std::fs::File::open(file).map_err(|fault| self.cannot_read(fault))?;
                Box::new(std::io::BufReader::new(file))
            }
            (None, None) if !self.stdin && std::io::stdin().is_terminal() => {
                return Err(Failure::Usage(
                    "TEXT is missing: give it after the model, or with -f".into(),
                ));
            }
            _ => Box::new(std::io::stdin().lock()),
        })
    }

    fn cannot_read(&self, fault: std::io::Error) -> Failure {
        let name = self.file.as_deref().unwrap_or(Path::new("standard input"));
        Error::read(name, fault).into()
    }
}

/// Number of lines tokenized in parallel.
const BATCH: usize = 1024;

fn jsonl(
    tokenizer: &Encoder,
    options: EncodeOptions,
    input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut texts: Vec<String> = Vec::with_capacity(BATCH);
    let mut lines = (1..).zip(input.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let line = line.map_err(|fault| {
            Failure::Environment(format!("cannot read line {number} of the input: {fault}"))
        })?;
        let text = serde_json::from_str(&line).map_err(|fault| {
            Failure::Input(format!(
                "line {number} of the input is not a JSON string: {}; --jsonl expects a quoted string per line",
                gguf_kit::json::fault(&fault)
            ))
        })?;
        texts.push(text);
        if texts.len() == BATCH || lines.peek().is_none() {
            for ids in tokenizer.encode_batch(&texts, options)? {
                print_list(&ids, out)?;
            }
            texts.clear();
        }
    }
    Ok(())
}

/// Prints the ids as a JSON list.
fn print_list(ids: &[u32], out: &mut impl Write) -> std::io::Result<()> {
    let mut separator = "";
    write!(out, "[")?;
    for id in ids {
        write!(out, "{separator}{id}")?;
        separator = ", ";
    }
    writeln!(out, "]")
}
