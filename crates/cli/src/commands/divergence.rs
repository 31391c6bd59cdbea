//! `gguf divergence`: KL divergence from a reference model.

pub mod report;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_kit::eval::{
    Against, CompareOptions, ComparisonReport, Divergence, SaveLogits, divergence,
};
use gguf_kit::report::divergence_markdown;

use crate::evaluation::{EvalArgs, EvalOutputArgs};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::threads::on_threads;

/// Compute the KL divergence from a reference model.
///
/// Runs the models and the reference side by side on a text, and compares their predictions: KL divergence
/// (KLD), top-1 agreement and perplexity ratio. Needs no logits file, but reads and writes those of llama.cpp.
#[derive(clap::Args)]
#[command(
    visible_alias = "kl-divergence",
    after_help = "Examples:\n  gguf divergence --reference f16.gguf q4_k_m.gguf -f text.txt\n  \
                  gguf divergence --reference f16.gguf q8_0.gguf q4_0.gguf -f text.txt --chunks 64 --json\n  \
                  gguf divergence --reference f16.gguf q8_0.gguf q4_0.gguf -f text.txt --markdown\n  \
                  gguf divergence --reference SmolLM2-135M/ q4_k_m.gguf -f text.txt --worst 20\n  \
                  gguf divergence --reference-logits f16.logits q4_k_m.gguf\n  \
                  gguf divergence --reference f16.gguf q4_0.gguf -f text.txt --part 1/4 -o q4_0-1.part",
    mut_arg("file", |file| file.required(false).required_unless_present("reference_logits"))
)]
pub struct Args {
    /// Reference model: a file, directory, checkpoint, shard or remote location.
    #[arg(short, long, value_name = "MODEL", required_unless_present = "reference_logits")]
    reference: Option<String>,
    /// Logits of the reference model, written by `llama-perplexity` or --save-logits. Includes the text.
    #[arg(long, value_name = "FILE", alias = "kl-divergence-base")]
    #[arg(conflicts_with_all = ["reference", "file", "ctx_size", "stride", "save_logits"])]
    pub reference_logits: Option<PathBuf>,
    /// Models: files, directories, checkpoints, shards or remote locations.
    #[arg(required = true, value_name = "MODEL")]
    pub models: Vec<String>,
    #[command(flatten)]
    pub eval: EvalArgs,
    /// Number of tokens with the largest KLD to show.
    #[arg(long, value_name = "N", default_value_t = 5)]
    worst: usize,
    /// Save the reference logits in the format of `llama-perplexity`: two bytes per vocabulary entry and token.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stride", "output"])]
    save_logits: Option<PathBuf>,
    /// Print a table in Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    #[command(flatten)]
    output: EvalOutputArgs,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let task = args.eval.task()?;
    let options = args.eval.run.options(args.eval.precision);
    let mut read: Vec<String> = args.models.iter().chain(&args.reference).cloned().collect();
    read.extend(args.reference_logits.iter().map(|path| path.display().to_string()));
    let mut keeper = args.output.keeper(&args.eval, &read)?;
    let overwrite =
        args.output.force.protecting(args.eval.inputs().chain(read.iter().map(Path::new)));
    let save = args.save_logits.as_deref().map(|path| SaveLogits { path, overwrite: &overwrite });
    let against = match (&args.reference, &args.reference_logits) {
        (Some(reference), _) => Against::Model(reference),
        (None, path) => Against::Logits(path.as_deref().unwrap_or(Path::new(""))),
    };
    let (models, worst) = (&args.models[..], args.worst);
    let compare = CompareOptions { against, models, options: &options, task: &task, worst, save };
    let found = on_threads(args.eval.run.threads, || -> Result<ComparisonReport, Failure> {
        let progress = Progress::of_tokens();
        let mut each = |found: &[&Divergence]| {
            let means = found.iter().map(|found| format!("{:.6}", found.divergence.value()));
            progress.set_message(format!("KLD {}", means.collect::<Vec<_>>().join(", ")));
        };
        let found = divergence(&compare, &mut keeper, &mut each, &progress)?;
        progress.finish();
        Ok(found)
    });
    let found = found.map_err(|failure| args.output.paused(failure))?;
    let names: Vec<String> = models.iter().map(|model| gguf_kit::redact(model)).collect();
    let reference = gguf_kit::redact(&against.name());
    let mut out = std::io::stdout().lock();
    if args.markdown {
        let models: Vec<_> = names.iter().map(String::as_str).zip(&found.models).collect();
        return Ok(out.write_all(divergence_markdown(&reference, &models).as_bytes())?);
    }
    report::print(&mut out, &reference, &names, &found, args.eval.json)?;
    Ok(())
}
