//! `gguf perplexity`: how well models predict a text, and how many questions they answer.

mod benchmark;

use std::io::Write;

use gguf_kit::eval::{Perplexity, perplexity};
use gguf_kit::on_threads;
use serde_json::json;

use crate::failure::Failure;
use crate::judging::JudgeArgs;
use crate::progress::Progress;

/// Say how well models predict a text: the perplexity, as `llama-perplexity` counts it. Lower is better;
/// of two files of one model, or of models with the same vocabulary, on the same text. Or say how many
/// questions of a benchmark they answer, which other models can be compared by too.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf perplexity model.gguf -f wiki.test.raw\n  \
                        gguf perplexity f16.gguf q4_k_m.gguf -f text.txt --ctx-size 256 --chunks 64 --json\n  \
                        gguf perplexity model.gguf -f text.txt --stride 256\n  \
                        gguf perplexity model.gguf -f hellaswag_val_full.txt --hellaswag --hellaswag-tasks 1000")]
pub struct Args {
    /// Files, directories, shards or far locations of models.
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    benchmark: benchmark::BenchmarkArgs,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some((benchmark, count)) = args.benchmark.chosen() {
        return benchmark::run(args, benchmark, count);
    }
    let task = args.judge.task()?;
    let options = args.judge.run.options(args.judge.arithmetic);
    let mut out = std::io::stdout().lock();
    let mut listed = Vec::new();
    for model in &args.models {
        let found = on_threads(args.judge.run.threads, || -> Result<Perplexity, Failure> {
            let progress = Progress::of_tokens();
            let mut each = |found: &Perplexity| progress.say(said(found));
            let found = perplexity(model, &options, &task, &mut each, &progress)?;
            progress.finish();
            Ok(found)
        })?;
        if args.judge.json {
            listed.push(json!({
                "file": model,
                "perplexity": found.value(),
                "perplexity_error": found.error(),
                "mean_nll": found.surprise.value(),
                "tokens": found.surprise.count,
                "windows": found.windows,
            }));
        } else {
            let (windows, tokens) = (found.windows, found.surprise.count);
            let said = said(&found);
            writeln!(out, "{model}: {said} ({tokens} tokens predicted in {windows} windows)")?;
        }
    }
    if args.judge.json {
        writeln!(out, "{:#}", json!({ "models": listed }))?;
    }
    Ok(())
}

fn said(found: &Perplexity) -> String {
    format!("perplexity {:.4} ± {:.4}", found.value(), found.error())
}
