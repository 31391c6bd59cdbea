//! `gguf perplexity`: perplexity and benchmark accuracy.

pub mod benchmark;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_kit::eval::{Perplexity, SaveLogits, perplexity};
use serde_json::json;

use crate::document;
use crate::evaluation::{EvalArgs, EvalOutputArgs};
use crate::failure::Failure;
use crate::listing;
use crate::progress::Progress;
use crate::threads::on_threads;

/// Compute perplexity or benchmark accuracy.
///
/// Perplexity is computed as in `llama-perplexity`; lower is better. It is comparable between models with the
/// same vocabulary on the same text. Accuracy on a benchmark (HellaSwag, WinoGrande, multiple choice) is
/// comparable between all models.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf perplexity model.gguf -f wiki.test.raw\n  \
                        gguf perplexity f16.gguf q4_k_m.gguf -f text.txt --ctx-size 256 --chunks 64 --json\n  \
                        gguf perplexity model.gguf -f text.txt --stride 256\n  \
                        gguf perplexity f16.gguf -f text.txt --save-logits f16.logits\n  \
                        gguf perplexity model.gguf -f text.txt --part 1/4 -o model-1.part\n  \
                        gguf perplexity model.gguf -f hellaswag_val_full.txt --hellaswag --hellaswag-tasks 1000")]
pub struct Args {
    /// Models: files, directories, checkpoints, shards or remote locations.
    #[arg(required = true, value_name = "MODEL")]
    pub models: Vec<String>,
    #[command(flatten)]
    pub eval: EvalArgs,
    /// Save logits in the format of `llama-perplexity`: two bytes per vocabulary entry and token.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stride", "output"])]
    #[arg(aliases = ["save-all-logits", "kl-divergence-base"])]
    pub save_logits: Option<PathBuf>,
    #[command(flatten)]
    output: EvalOutputArgs,
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
    let task = args.eval.task()?;
    let inputs = args.eval.inputs().chain(args.models.iter().map(Path::new));
    let overwrite = args.output.force.protecting(inputs);
    let save = args.save_logits.as_deref().map(|path| SaveLogits { path, overwrite: &overwrite });
    let mut keeper = args.output.keeper(&args.eval, &args.models)?;
    let options = args.eval.run.options(args.eval.precision);
    let mut out = std::io::stdout().lock();
    let mut all = Vec::new();
    for model in &args.models {
        let found = on_threads(args.eval.run.threads, || -> Result<Perplexity, Failure> {
            let progress = Progress::of_tokens();
            let mut each = |found: &Perplexity| progress.set_message(summary(found));
            let found =
                perplexity(model, &options, &task, save, &mut keeper, &mut each, &progress)?;
            progress.finish();
            Ok(found)
        });
        let found = found.map_err(|failure| args.output.paused(failure))?;
        let model = gguf_kit::redact(model);
        if !args.eval.json {
            print(&mut out, &model, &found)?;
        }
        all.push((model, found));
    }
    if args.eval.json {
        print_json(&mut out, &all)?;
    }
    Ok(())
}

/// Prints the perplexity of a model.
pub fn print(out: &mut impl Write, model: &str, found: &Perplexity) -> std::io::Result<()> {
    let evaluated = listing::evaluated(found.surprise.count as usize, found.chunks);
    writeln!(out, "{model}: {} ({evaluated})", summary(found))
}

/// Prints the perplexity of all models as JSON.
pub fn print_json(out: &mut impl Write, all: &[(String, Perplexity)]) -> std::io::Result<()> {
    let listed = all.iter().map(|(model, found)| {
        json!({
            "file": model,
            "perplexity": found.value(),
            "perplexity_error": found.error(),
            "mean_nll": found.surprise.value(),
            "tokens": found.surprise.count,
            "chunks": found.chunks,
        })
    });
    document::print(out, "perplexity/2", json!({ "models": listed.collect::<Vec<_>>() }))
}

fn summary(found: &Perplexity) -> String {
    format!("perplexity {:.4} ± {:.4}", found.value(), found.error())
}
