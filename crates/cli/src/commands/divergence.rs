//! `gguf divergence`: how far models are from the one they were made of.

pub mod figures;

use std::path::{Path, PathBuf};

use gguf_kit::eval::{
    Against, CompareOptions, ComparisonReport, Divergence, SaveLogits, divergence,
};
use gguf_kit::on_threads;

use crate::failure::Failure;
use crate::judging::{JudgeArgs, KeepArgs};
use crate::progress::Progress;

/// Say how far models are from the one they were made of.
///
/// Both read a text side by side, and what they predict is compared. No file of logits is needed; those
/// of llama.cpp can be read and written.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  gguf divergence --reference f16.gguf q4_k_m.gguf -f text.txt\n  \
                  gguf divergence --reference f16.gguf q8_0.gguf q4_0.gguf -f text.txt --chunks 64 --json\n  \
                  gguf divergence --reference SmolLM2-135M/ q4_k_m.gguf -f text.txt --worst 20\n  \
                  gguf divergence --reference-logits f16.logits q4_k_m.gguf\n  \
                  gguf divergence --reference f16.gguf q4_0.gguf -f text.txt --part 1/4 -o q4_0-1.part",
    mut_arg("file", |file| file.required(false).required_unless_present("reference_logits"))
)]
pub struct Args {
    /// The original: file, directory (of a checkpoint, too), shard or far location.
    #[arg(short, long, value_name = "MODEL", required_unless_present = "reference_logits")]
    reference: Option<String>,
    /// What the original predicted, in a file of logits of `llama-perplexity` or of `--save-logits`,
    /// which has the text in it.
    #[arg(long, value_name = "FILE", alias = "kl-divergence-base")]
    #[arg(conflicts_with_all = ["reference", "file", "ctx_size", "stride", "save_logits"])]
    pub reference_logits: Option<PathBuf>,
    /// Files, directories (of checkpoints, too), shards or far locations of the models.
    #[arg(required = true, value_name = "MODEL")]
    pub models: Vec<String>,
    #[command(flatten)]
    pub judge: JudgeArgs,
    /// How many of the predictions to show that a model is farthest off.
    #[arg(long, value_name = "N", default_value_t = 5)]
    worst: usize,
    /// Write what the original predicts to a file of logits, as `llama-perplexity` does: two bytes for
    /// each token of the vocabulary, at each place.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stride", "output"])]
    save_logits: Option<PathBuf>,
    #[command(flatten)]
    keep: KeepArgs,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let task = args.judge.task()?;
    let options = args.judge.run.options(args.judge.arithmetic);
    let mut read: Vec<String> = args.models.iter().chain(&args.reference).cloned().collect();
    read.extend(args.reference_logits.iter().map(|path| path.display().to_string()));
    let mut keeper = args.keep.keeper(&args.judge, &read)?;
    let overwrite =
        args.keep.force.protecting(args.judge.inputs().chain(read.iter().map(Path::new)));
    let save = args.save_logits.as_deref().map(|path| SaveLogits { path, overwrite: &overwrite });
    let against = match (&args.reference, &args.reference_logits) {
        (Some(reference), _) => Against::Model(reference),
        (None, path) => Against::Logits(path.as_deref().unwrap_or(Path::new(""))),
    };
    let (models, worst) = (&args.models[..], args.worst);
    let compare = CompareOptions { against, models, options: &options, task: &task, worst, save };
    let found = on_threads(args.judge.run.threads, || -> Result<ComparisonReport, Failure> {
        let progress = Progress::of_tokens();
        let mut each = |found: &[&Divergence]| {
            let means = found.iter().map(|found| format!("{:.6}", found.divergence.value()));
            progress.say(format!("divergence {}", means.collect::<Vec<_>>().join(", ")));
        };
        let found = divergence(&compare, &mut keeper, &mut each, &progress)?;
        progress.finish();
        Ok(found)
    });
    let found = found.map_err(|failure| args.keep.paused(failure))?;
    figures::tell(&mut std::io::stdout().lock(), &against.name(), models, &found, args.judge.json)?;
    Ok(())
}
