//! `gguf perplexity`: how well models predict a text, and how many questions they answer.

pub mod benchmark;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_kit::eval::{Perplexity, SaveLogits, perplexity};
use gguf_kit::on_threads;
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::judging::{JudgeArgs, KeepArgs};
use crate::progress::Progress;

/// Say how well models predict a text, or answer questions.
///
/// The perplexity is counted as `llama-perplexity` does. Lower is better; of two files of one model, or of
/// models with the same vocabulary, on the same text. Questions are those of a benchmark, by which other
/// models can be compared too.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf perplexity model.gguf -f wiki.test.raw\n  \
                        gguf perplexity f16.gguf q4_k_m.gguf -f text.txt --ctx-size 256 --chunks 64 --json\n  \
                        gguf perplexity model.gguf -f text.txt --stride 256\n  \
                        gguf perplexity f16.gguf -f text.txt --save-logits f16.logits\n  \
                        gguf perplexity model.gguf -f text.txt --part 1/4 -o model-1.part\n  \
                        gguf perplexity model.gguf -f hellaswag_val_full.txt --hellaswag --hellaswag-tasks 1000")]
pub struct Args {
    /// Files, directories (of checkpoints, too), shards or far locations of models.
    #[arg(required = true, value_name = "MODEL")]
    pub models: Vec<String>,
    #[command(flatten)]
    pub judge: JudgeArgs,
    /// Write what the model predicts to a file of logits, as `llama-perplexity` does: two bytes for
    /// each token of the vocabulary, at each place.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stride", "output"])]
    #[arg(aliases = ["save-all-logits", "kl-divergence-base"])]
    pub save_logits: Option<PathBuf>,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    pub benchmark: benchmark::BenchmarkArgs,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some((benchmark, count)) = args.benchmark.chosen() {
        return benchmark::run(args, benchmark, count);
    }
    if args.save_logits.is_some() && args.models.len() > 1 {
        return Err(Failure::Usage("--save-logits takes one model".to_owned()));
    }
    let task = args.judge.task()?;
    let inputs = args.judge.inputs().chain(args.models.iter().map(Path::new));
    let overwrite = args.keep.force.protecting(inputs);
    let save = args.save_logits.as_deref().map(|path| SaveLogits { path, overwrite: &overwrite });
    let mut keeper = args.keep.keeper(&args.judge, &args.models)?;
    let options = args.judge.run.options(args.judge.arithmetic);
    let mut out = std::io::stdout().lock();
    let mut all = Vec::new();
    for model in &args.models {
        let found = on_threads(args.judge.run.threads, || -> Result<Perplexity, Failure> {
            let progress = Progress::of_tokens();
            let mut each = |found: &Perplexity| progress.say(said(found));
            let found =
                perplexity(model, &options, &task, save, &mut keeper, &mut each, &progress)?;
            progress.finish();
            Ok(found)
        });
        let found = found.map_err(|failure| args.keep.paused(failure))?;
        if !args.judge.json {
            print(&mut out, model, &found)?;
        }
        all.push((model.clone(), found));
    }
    if args.judge.json {
        print_json(&mut out, &all)?;
    }
    Ok(())
}

/// Says how well a model predicts.
pub fn print(out: &mut impl Write, model: &str, found: &Perplexity) -> std::io::Result<()> {
    let (windows, tokens) = (found.chunks, found.surprise.count);
    writeln!(out, "{model}: {} ({tokens} tokens predicted in {windows} windows)", said(found))
}

/// The same of all models, for programs.
pub fn print_json(out: &mut impl Write, all: &[(String, Perplexity)]) -> std::io::Result<()> {
    let listed = all.iter().map(|(model, found)| {
        json!({
            "file": model,
            "perplexity": found.value(),
            "perplexity_error": found.error(),
            "mean_nll": found.surprise.value(),
            "tokens": found.surprise.count,
            "windows": found.chunks,
        })
    });
    document::print(out, "perplexity/1", json!({ "models": listed.collect::<Vec<_>>() }))
}

fn said(found: &Perplexity) -> String {
    format!("perplexity {:.4} ± {:.4}", found.value(), found.error())
}
