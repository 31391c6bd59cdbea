//! `gguf embed`: embeddings and classifier scores.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use gguf_graph::{OutputKind, Pooling};
use gguf_kit::embed::{EmbedOutput, embed, labels, normalize, probabilities};
use gguf_kit::npy;
use gguf_kit::run::LoadedModel;
use gguf_runtime::Value;
use gguf_store::AtomicFile;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};
use serde_json::to_string;

use crate::failure::Failure;
use crate::force::Force;
use crate::model_args::{PrecisionArg, RunArgs, warn_if_too_long};
use crate::progress::Progress;
use crate::threads::on_threads;

/// Compute embeddings or classifier scores.
///
/// Prints one JSON object per text: its embedding, or the scores of its classes if the model is a classifier.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  gguf embed all-MiniLM-L6-v2.gguf -p \"A text.\" -p \"Another one.\"\n  \
                        gguf embed model.gguf -f lines.txt --output embeddings.npy\n  \
                        gguf embed model.gguf -p \"A text.\" --pooling none --no-normalize"
)]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    #[command(flatten)]
    texts: Texts,
    /// Pooling [default: that of the model]; none returns one vector per token.
    #[arg(long, value_enum, value_name = "TYPE")]
    pooling: Option<PoolingArg>,
    /// Do not L2-normalize embeddings.
    #[arg(long)]
    no_normalize: bool,
    /// Write to a .npy file instead: F32, one row per text or token.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compute precision: F32 accumulation (exact) or 8-bit activations (fast).
    #[arg(long, value_enum, default_value_t = PrecisionArg::Exact, alias = "arithmetic")]
    precision: PrecisionArg,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    force: Force,
}

#[derive(clap::Args)]
#[group(skip)]
struct Texts {
    /// Texts [default: the lines of standard input].
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
    /// Text. May be repeated.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
    /// File with one text per line; `-` for standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PoolingArg {
    Mean,
    Cls,
    Last,
    None,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    on_threads(args.run.threads, || {
        let pooling = args.pooling.and_then(PoolingArg::kind);
        let running = args.run.open_pooled(&args.source, args.precision, pooling)?;
        let overwrite = args.force.protecting(running.files.iter().chain(&args.texts.file));
        if let Some(output) = &args.output {
            overwrite.check(output)?;
        }
        let tokenizer = Tokenizer::from_metadata(&running.metadata, TokenizerOptions::default())?;
        let texts = args.texts.read()?;
        let ids: Vec<Vec<u32>> =
            texts.iter().map(|text| tokenizer.encode(text, EncodeOptions::default())).collect();
        warn_if_too_long(&running.metadata, ids.iter().map(Vec::len).max().unwrap_or(0));
        let kind = match args.pooling {
            Some(PoolingArg::None) => EmbedOutput::Tokens,
            None if running.executor.width(OutputKind::Classes).is_some() => EmbedOutput::Classes,
            _ => EmbedOutput::Pooled,
        };
        let progress = Progress::new();
        let mut result =
            embed(&running, &ids, kind, args.run.cache_type(args.precision), &progress)?;
        progress.finish();
        if kind != EmbedOutput::Classes && !args.no_normalize {
            result.iter_mut().for_each(normalize);
        }
        let Some(path) = &args.output else {
            return Ok(print(&running, kind, &result)?);
        };
        let all = Value {
            rows: result.iter().map(|value| value.rows).sum(),
            width: result.first().map_or(0, |value| value.width),
            data: result.into_iter().flat_map(|value| value.data).collect(),
        };
        AtomicFile::write(path, &npy::to_bytes(&all), &overwrite)?;
        eprintln!("wrote {} ({} x {})", path.display(), all.rows, all.width);
        Ok(())
    })
}

fn print(running: &LoadedModel, kind: EmbedOutput, result: &[Value]) -> io::Result<()> {
    let labels = labels(running);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for value in result {
        // Prints the shortest F32 representation, which a JSON value would not keep.
        let (name, text) = match kind {
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

impl PoolingArg {
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
    /// Returns the texts of the command line, then those of the file; without either, those of standard input. Skips empty
    /// lines.
    fn read(&self) -> Result<Vec<String>, Failure> {
        let mut texts = [&self.words[..], &self.prompt].concat();
        let stdin = texts.is_empty().then(|| PathBuf::from("-"));
        if self.file.is_none() && stdin.is_some() && io::stdin().is_terminal() {
            return Err(Failure::Usage(
                "TEXT is missing: give it after the model, or with -f".into(),
            ));
        }
        if let Some(file) = self.file.clone().or(stdin) {
            let lines = gguf_kit::read_text(&file)?;
            texts.extend(lines.lines().filter(|line| !line.is_empty()).map(str::to_owned));
        }
        if texts.is_empty() {
            return Err(Failure::Usage("the input has no text".into()));
        }
        Ok(texts)
    }
}
