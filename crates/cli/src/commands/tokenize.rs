//! `gguf tokenize`: text to token ids, in the lines of `llama-tokenize`.

use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};

use gguf_kit::Error;
use gguf_kit::tokens::Encoder;
use gguf_tokenizer::EncodeOptions;

use crate::compat::Compat;
use crate::failure::Failure;

/// Print the tokens of a text.
#[derive(clap::Args)]
#[command(after_help = "Text is taken as it is, byte for byte: nothing is trimmed, no escape is \
                  replaced. What is not UTF-8 becomes U+FFFD.\n\n\
                  Examples:\n  gguf tokenize model.gguf -p \"Hello world\"\n  \
                  gguf tokenize model.gguf -f prompt.txt --ids\n  \
                  cat lines.jsonl | gguf tokenize model.gguf --stdin --jsonl > ids.jsonl")]
pub struct Args {
    /// The model; or a directory with tokenizer files, or a tokenizer.json.
    source: String,
    #[command(flatten)]
    text: Text,
    /// Only the ids, as a list.
    #[arg(long, conflicts_with = "jsonl")]
    ids: bool,
    /// Do not add the tokens that the model wants at the ends of a text.
    #[arg(long)]
    no_bos: bool,
    /// Take the texts of control tokens for plain text.
    #[arg(long)]
    no_parse_special: bool,
    /// Print the number of tokens as well.
    #[arg(long, conflicts_with = "jsonl")]
    show_count: bool,
    /// Read one JSON string per line, print one JSON array of ids per line.
    #[arg(long)]
    jsonl: bool,
    /// Whom to follow where the model's own tokenizer and llama.cpp differ.
    #[arg(long, value_enum, default_value_t = Compat::Own)]
    compat: Compat,
    /// Use the tokenizer.json that the file carries as `tokenizer.huggingface.json`.
    #[arg(long, conflicts_with = "compat")]
    huggingface: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Text {
    /// The text.
    #[arg(short, long, value_name = "TEXT")]
    prompt: Option<String>,
    /// A file with the text; `-` for the standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Read the text from the standard input.
    #[arg(long)]
    stdin: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let tokenizer = if args.huggingface {
        Encoder::huggingface(&args.source)?
    } else {
        Encoder::Ggml(Box::new(args.compat.open(&args.source)?))
    };
    let how = EncodeOptions { add_special: !args.no_bos, parse_special: !args.no_parse_special };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.jsonl {
        jsonl(&tokenizer, how, args.text.lines()?, &mut out)?;
    } else {
        let ids = tokenizer.encode_batch(&[args.text.read()?], how)?.pop().unwrap_or_default();
        if args.ids {
            list(&ids, &mut out)?;
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
        if let Some(prompt) = &self.prompt {
            return Ok(prompt.clone());
        }
        let mut bytes = Vec::new();
        self.lines()?.read_to_end(&mut bytes).map_err(|fault| self.cannot_read(fault))?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(fault) => {
                crate::terminal::note("the text is not all UTF-8: what is not becomes U+FFFD");
                String::from_utf8_lossy(fault.as_bytes()).into_owned()
            }
        })
    }

    /// The text as a stream.
    fn lines(&self) -> Result<Box<dyn BufRead + '_>, Failure> {
        Ok(match (&self.prompt, &self.file) {
            (Some(prompt), _) => Box::new(prompt.as_bytes()),
            (_, Some(file)) if file != Path::new("-") => {
                let file = std::fs::File::open(file).map_err(|fault| self.cannot_read(fault))?;
                Box::new(std::io::BufReader::new(file))
            }
            _ => Box::new(std::io::stdin().lock()),
        })
    }

    fn cannot_read(&self, fault: std::io::Error) -> Failure {
        let name = self.file.as_deref().unwrap_or(Path::new("the standard input"));
        Error::read(name, fault).into()
    }
}

/// Lines that are encoded together, on all cores.
const BATCH: usize = 1024;

fn jsonl(
    tokenizer: &Encoder,
    how: EncodeOptions,
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
                "line {number} of the input is no JSON string: {fault}; with --jsonl, every line \
                 is one, in quotes"
            ))
        })?;
        texts.push(text);
        if texts.len() == BATCH || lines.peek().is_none() {
            for ids in tokenizer.encode_batch(&texts, how)? {
                list(&ids, out)?;
            }
            texts.clear();
        }
    }
    Ok(())
}

/// A line with the ids.
fn list(ids: &[u32], out: &mut impl Write) -> std::io::Result<()> {
    let mut separator = "";
    write!(out, "[")?;
    for id in ids {
        write!(out, "{separator}{id}")?;
        separator = ", ";
    }
    writeln!(out, "]")
}
