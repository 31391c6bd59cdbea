//! `gguf embed`: texts as vectors, or as scores of classes.

use std::io::{self, Write};
use std::path::PathBuf;

use gguf_graph::{OutputKind, Pooling};
use gguf_kit::embed::{EmbedOutput, embed, labels, normalize, probabilities};
use gguf_kit::run::LoadedModel;
use gguf_kit::{npy, on_threads};
use gguf_runtime::Value;
use gguf_store::AtomicFile;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};
use serde_json::to_string;

use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::running::{RunArgs, Sums, warn_of_length};

/// Print a vector for each text, or scores of classes.
///
/// One JSON object per line; of a classifier the scores of its classes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  gguf embed all-MiniLM-L6-v2.gguf -p \"A text.\" -p \"Another one.\"\n  \
                        gguf embed model.gguf -f lines.txt --output vectors.npy\n  \
                        gguf embed model.gguf -p \"A text.\" --pooling none --no-normalize"
)]
pub struct Args {
    /// File, directory, shard or far location of the model.
    source: String,
    #[command(flatten)]
    texts: Texts,
    /// How the tokens of a text become one vector, instead of the model's way; none gives one for each
    /// token.
    #[arg(long, value_enum)]
    pooling: Option<Pool>,
    /// Leave vectors as long as the model makes them, instead of 1.
    #[arg(long)]
    no_normalize: bool,
    /// Write them to a .npy file instead: F32, a row for each text, or for each token.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How products are computed.
    #[arg(long, value_enum, default_value_t = Sums::Exact)]
    arithmetic: Sums,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    force: Force,
}

#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Texts {
    /// A text; may be repeated.
    #[arg(short, long, value_name = "TEXT")]
    prompt: Vec<String>,
    /// A file with a text per line.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Pool {
    Mean,
    Cls,
    Last,
    None,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    on_threads(args.run.threads, || {
        let pooling = args.pooling.and_then(Pool::kind);
        let running = args.run.open_pooled(&args.source, args.arithmetic, pooling)?;
        let overwrite = args.force.protecting(running.files.iter().chain(&args.texts.file));
        if let Some(output) = &args.output {
            overwrite.check(output)?;
        }
        let tokenizer = Tokenizer::from_metadata(&running.metadata, TokenizerOptions::default())?;
        let texts = args.texts.read()?;
        let ids: Vec<Vec<u32>> =
            texts.iter().map(|text| tokenizer.encode(text, EncodeOptions::default())).collect();
        warn_of_length(&running.metadata, ids.iter().map(Vec::len).max().unwrap_or(0));
        let wanted = match args.pooling {
            Some(Pool::None) => EmbedOutput::Tokens,
            None if running.executor.width(OutputKind::Classes).is_some() => EmbedOutput::Classes,
            _ => EmbedOutput::Pooled,
        };
        let progress = Progress::new();
        let mut made = embed(&running, &ids, wanted, args.run.cache_type(), &progress)?;
        progress.finish();
        if wanted != EmbedOutput::Classes && !args.no_normalize {
            made.iter_mut().for_each(normalize);
        }
        let Some(path) = &args.output else {
            return Ok(print(&running, wanted, &made)?);
        };
        let all = Value {
            rows: made.iter().map(|value| value.rows).sum(),
            width: made.first().map_or(0, |value| value.width),
            data: made.into_iter().flat_map(|value| value.data).collect(),
        };
        AtomicFile::write(path, &npy::to_bytes(&all), &overwrite)?;
        eprintln!("wrote {} ({} x {})", path.display(), all.rows, all.width);
        Ok(())
    })
}

fn print(running: &LoadedModel, wanted: EmbedOutput, made: &[Value]) -> io::Result<()> {
    let labels = labels(running);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for value in made {
        // Numbers as short as F32 allows, which a JSON value would not keep.
        let (name, text) = match wanted {
            EmbedOutput::Pooled => ("embedding", to_string(&value.data)?),
            EmbedOutput::Tokens => {
                let rows: Vec<&[f32]> = (0..value.rows).map(|row| value.row(row)).collect();
                ("embedding", to_string(&rows)?)
            }
            EmbedOutput::Classes => ("classes", classes(&labels, &value.data)?),
        };
        writeln!(out, "{{\"schema\":\"gguf-kit/embed/1\",\"{name}\":{text}}}")?;
    }
    out.flush()
}

fn classes(labels: &[String], scores: &[f32]) -> io::Result<String> {
    let mut classes = Vec::new();
    for (number, (score, probability)) in scores.iter().zip(probabilities(scores)).enumerate() {
        let label = labels.get(number).cloned().unwrap_or_else(|| format!("LABEL_{number}"));
        let (label, score, probability) =
            (to_string(&label)?, to_string(score)?, to_string(&probability)?);
        classes
            .push(format!("{{\"label\":{label},\"score\":{score},\"probability\":{probability}}}"));
    }
    Ok(format!("[{}]", classes.join(",")))
}

impl Pool {
    fn kind(self) -> Option<Pooling> {
        match self {
            Self::Mean => Some(Pooling::Mean),
            Self::Cls => Some(Pooling::Cls),
            Self::Last => Some(Pooling::Last),
            Self::None => None,
        }
    }
}

impl Texts {
    /// Those of the command line, then those of the file; lines without text are none.
    fn read(&self) -> Result<Vec<String>, Failure> {
        let mut texts = self.prompt.clone();
        if let Some(file) = &self.file {
            let lines = gguf_kit::read_text(file)?;
            texts.extend(lines.lines().filter(|line| !line.is_empty()).map(str::to_owned));
        }
        Ok(texts)
    }
}
