//! `gguf eval-merge`: the parts of an evaluation put together.

use std::path::PathBuf;

use gguf_kit::eval::{Merged, merge};

use super::{divergence, imatrix, perplexity};
use crate::failure::Failure;
use crate::force::Force;

/// Put together what machines measured with --part.
///
/// Reads what `gguf perplexity`, `divergence` or `imatrix` wrote with --part; the figures are, to the last
/// digit, those of one run.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf eval-merge model-1.part model-2.part model-3.part\n  \
                        gguf eval-merge q4_0-*.part --json\n  \
                        gguf eval-merge imatrix-*.part -o imatrix.gguf")]
pub struct Args {
    /// All parts of one run, in any order.
    #[arg(required = true, value_name = "PART")]
    parts: Vec<PathBuf>,
    /// Where to write the importance matrix, if that is what the parts make.
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
            imatrix::write_as_named(&whole, path, &args.force.protecting(&args.parts))?;
            eprintln!("wrote {}", path.display());
            imatrix::tell(&mut out, &whole, args.json)
        }
        (Merged::Importance(_), None) => {
            Err(Failure::Usage("the parts make an importance matrix: give -o".to_owned()))
        }
        (_, Some(_)) => Err(Failure::Usage(
            "the parts make figures, which are printed: leave out -o".to_owned(),
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
            Ok(divergence::figures::tell(&mut out, &reference, &models, &found, args.json)?)
        }
    }
}
