//! `gguf eval-merge`: merges the parts of a distributed evaluation.

use std::path::PathBuf;

use gguf_kit::eval::{Merged, merge};

use super::{divergence, imatrix, perplexity};
use crate::failure::Failure;
use crate::force::Force;

/// Merge the results of distributed evaluations.
///
/// Reads the files that `gguf perplexity`, `divergence` or `imatrix` wrote with --part. The result is
/// identical, to the last digit, to that of a single run.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf eval-merge model-1.part model-2.part model-3.part\n  \
                        gguf eval-merge q4_0-*.part --json\n  \
                        gguf eval-merge imatrix-*.part -o imatrix.gguf")]
pub struct Args {
    /// All parts of one evaluation, in any order.
    #[arg(required = true, value_name = "PART")]
    parts: Vec<PathBuf>,
    /// Output file for an importance matrix.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let merged = merge(&args.parts)?;
    let mut out = std::io::stdout().lock();
    match (merged, &args.output) {
        (Merged::Importance(whole), Some(path)) => {
            imatrix::write_by_extension(&whole, path, &args.force.protecting(&args.parts))?;
            eprintln!("wrote {}", path.display());
            imatrix::print_summary(&mut out, &whole, None, args.json)
        }
        (Merged::Importance(_), None) => {
            Err(Failure::Usage("the parts contain an importance matrix: use -o".to_owned()))
        }
        (_, Some(_)) => Err(Failure::Usage(
            "-o applies to importance matrices only; these parts contain evaluation results"
                .to_owned(),
        )),
        (Merged::Perplexity(models), None) if args.json => {
            Ok(perplexity::print_json(&mut out, &models)?)
        }
        (Merged::Perplexity(models), None) => {
            for (model, found) in &models {
                perplexity::print(&mut out, model, found)?;
            }
            Ok(())
        }
        (Merged::Divergence { reference, models, found }, None) => {
            Ok(divergence::report::print(&mut out, &reference, &models, &found, args.json)?)
        }
    }
}
