//! `gguf sensitivity`: per-tensor quantization sensitivity.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf::TensorType;
use gguf_kit::quantize::ImatrixChoice;
use gguf_kit::sensitivity::{self, SensitivityOptions, measure};
use gguf_quantize::sensitivity::Sensitivity;
use gguf_store::AtomicFile;

use crate::document;
use crate::evaluation::EvalArgs;
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::progress::Progress;
use crate::threads::on_threads;

/// Measure per-tensor quantization sensitivity.
///
/// Quantizes one tensor at a time and measures the KL divergence from the unquantized model. `gguf quantize`
/// uses the file to choose types for a size target.
#[derive(clap::Args)]
#[command(
    after_help = "Each tensor is measured in one type; the KL divergence of other types is extrapolated from the \
                  weight error. Needs one pass over the text per tensor, per role with --by role, or N with --runs N.\n\n\
                  Examples:\n  gguf sensitivity f16.gguf -f text.txt --chunks 8 -o sensitivity.json --runs 64\n  \
                  gguf sensitivity f16.gguf -f text.txt --chunks 8 --by role --imatrix imatrix.gguf -o s.json\n  \
                  gguf quantize f16.gguf small.gguf --target-bpw 4.25 --sensitivity sensitivity.json"
)]
pub struct Args {
    /// Reference model: a file, directory, checkpoint, shard or remote location.
    #[arg(value_name = "MODEL")]
    source: String,
    /// Tensor types, separated by commas [default: all candidates for a size target].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    types: Vec<TensorType>,
    /// Tensors to quantize together: a single tensor, the tensors of one role in all blocks, or the tensors of
    /// a block.
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = Grouping::Tensor)]
    by: Grouping,
    /// Measure every type instead of extrapolating. The time grows with the number of types.
    #[arg(long)]
    exact: bool,
    /// Estimate the effects from N runs, each with a random half of the tensors or groups quantized; 64 are a good choice.
    #[arg(long, value_name = "N", conflicts_with = "exact")]
    runs: Option<NonZeroUsize>,
    /// Importance matrix (GGUF or legacy `.dat`), the one to quantize with.
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Allow a model that is already quantized.
    #[arg(long)]
    allow_requantize: bool,
    /// Output file (JSON).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Number of models evaluated in parallel. More need more memory and less time.
    #[arg(
        long,
        alias = "together",
        value_name = "N",
        default_value = "8",
        help_heading = "Advanced"
    )]
    parallel_models: NonZeroUsize,
    #[command(flatten)]
    eval: EvalArgs,
    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Grouping {
    Tensor,
    Role,
    Block,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let inputs = std::iter::once(Path::new(&args.source)).chain(args.eval.inputs());
    let overwrite = args.force.protecting(inputs.chain(args.imatrix.as_deref()));
    if let Some(path) = &args.output {
        overwrite.check(path)?;
    }
    let options = SensitivityOptions {
        task: args.eval.task()?,
        text: args.eval.text(),
        run: args.eval.run.options(args.eval.precision),
        imatrix: args
            .imatrix
            .clone()
            .map(|file| ImatrixChoice { file, ..ImatrixChoice::default() }),
        allow_requantize: args.allow_requantize,
        types: args.types.clone(),
        grouping: match args.by {
            Grouping::Tensor => sensitivity::Grouping::Tensor,
            Grouping::Role => sensitivity::Grouping::Role,
            Grouping::Block => sensitivity::Grouping::Block,
        },
        exact: args.exact,
        runs: args.runs.map(NonZeroUsize::get),
        together: args.parallel_models.get(),
    };
    let found = on_threads(args.eval.run.threads, || -> Result<Sensitivity, Failure> {
        let progress = Progress::of_tokens();
        let found = measure(&args.source, &options, &progress)?;
        progress.finish();
        Ok(found)
    })?;
    if let Some(path) = &args.output {
        AtomicFile::write(path, found.to_json().as_bytes(), &overwrite)?;
        eprintln!("wrote {}", path.display());
    }
    let mut out = std::io::stdout().lock();
    if args.eval.json {
        // The document is the file that `-o` writes; its `version` is that of the file format.
        let file = serde_json::to_value(&found).map_err(std::io::Error::from)?;
        document::print(&mut out, "sensitivity/2", file)?;
    } else {
        print(&mut out, &found)?;
    }
    Ok(())
}

/// Prints one line per group, by decreasing sensitivity per weight.
fn print(out: &mut impl Write, found: &Sensitivity) -> std::io::Result<()> {
    let elements = |name: &String| -> u64 {
        found.tensors.get(name).map_or(0, |tensor| tensor.shape.iter().product())
    };
    let mut lines: Vec<(f64, String)> = Vec::new();
    let width = found.groups.iter().map(|group| group.name.len()).max().unwrap_or(0).max(6);
    for group in &found.groups {
        let weights: u64 = group.tensors.iter().map(elements).sum();
        let measured: &BTreeMap<String, f64> = &group.measured;
        let max = measured.values().copied().fold(0.0, f64::max);
        let per_weight = max / weights.max(1) as f64;
        let figures: Vec<_> = measured.iter().map(|(ty, x)| format!("{ty} {x:.7}")).collect();
        let (weights, per_million) = (listing::count(weights), 1e6 * per_weight);
        let figures = figures.join("  ");
        lines.push((
            per_weight,
            format!("{:<width$} {weights:>8} {per_million:>14.7}  {figures}", group.name),
        ));
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    writeln!(out, "{} of {}", listing::evaluated(found.tokens, found.chunks), found.text)?;
    writeln!(out, "{:<width$} {:>8} {:>14}  KLD by type", "tensor", "weights", "per million")?;
    lines.iter().try_for_each(|(_, line)| writeln!(out, "{line}"))
}
