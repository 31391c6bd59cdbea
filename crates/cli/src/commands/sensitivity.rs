//! `gguf sensitivity`: what each type of each tensor does to predictions.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf::TensorType;
use gguf_kit::on_threads;
use gguf_kit::quantize::Choice;
use gguf_kit::sensitivity::{self, SensitivityOptions, measure};
use gguf_quantize::sensitivity::Sensitivity;
use gguf_store::AtomicFile;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::judging::JudgeArgs;
use crate::listing;
use crate::progress::Progress;

/// Say what types of single tensors do to predictions.
///
/// Each type of each tensor is tried alone. `gguf quantize` takes the file as what a size target goes by.
#[derive(clap::Args)]
#[command(
    after_help = "Each tensor is measured in one type, and the others follow from the errors of the weights: as \
                  many runs over the text as there are tensors, or with --by role as there are roles.\n\n\
                  Examples:\n  gguf sensitivity f16.gguf -f text.txt --chunks 8 -o sensitivity.json\n  \
                  gguf sensitivity f16.gguf -f text.txt --chunks 8 --by role --imatrix imatrix.gguf -o s.json\n  \
                  gguf quantize f16.gguf small.gguf --target-bpw 4.25 --sensitivity sensitivity.json"
)]
pub struct Args {
    /// The original: file, directory, shard, checkpoint or far location.
    #[arg(value_name = "MODEL")]
    source: String,
    /// Tensor types with commas between them [default: all that a size target may choose].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    types: Vec<TensorType>,
    /// What is encoded together: each tensor alone, those that do the same in each block, or those of a
    /// block.
    #[arg(long, value_enum, default_value_t = Grouping::Tensor)]
    by: Grouping,
    /// Measure every type, which takes as many times longer as there are types.
    #[arg(long)]
    exact: bool,
    /// Importance matrix, GGUF or legacy `.dat`, that guides the encoders: the one to quantize with.
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Take a model that is quantized already.
    #[arg(long)]
    allow_requantize: bool,
    /// Where to write the sensitivities, as JSON.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Changed models that are in memory, and read the text beside the original, at a time.
    #[arg(long, value_name = "N", default_value = "8")]
    together: NonZeroUsize,
    #[command(flatten)]
    judge: JudgeArgs,
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
    let inputs = std::iter::once(Path::new(&args.source)).chain(args.judge.inputs());
    let overwrite = args.force.protecting(inputs.chain(args.imatrix.as_deref()));
    if let Some(path) = &args.output {
        overwrite.check(path)?;
    }
    let options = SensitivityOptions {
        task: args.judge.task()?,
        text: args.judge.text(),
        run: args.judge.run.options(args.judge.arithmetic),
        imatrix: args.imatrix.clone().map(|file| Choice { file, ..Choice::default() }),
        allow_requantize: args.allow_requantize,
        types: args.types.clone(),
        grouping: match args.by {
            Grouping::Tensor => sensitivity::Grouping::Tensor,
            Grouping::Role => sensitivity::Grouping::Role,
            Grouping::Block => sensitivity::Grouping::Block,
        },
        exact: args.exact,
        together: args.together.get(),
    };
    let found = on_threads(args.judge.run.threads, || -> Result<Sensitivity, Failure> {
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
    if args.judge.json {
        // The file that `-o` writes, with its `version`, which says how it is read back.
        let file = serde_json::to_value(&found).map_err(std::io::Error::from)?;
        document::print(&mut out, "sensitivity/1", file)?;
    } else {
        print(&mut out, &found)?;
    }
    Ok(())
}

/// A line per group, the most sensitive for its size first.
fn print(out: &mut impl Write, found: &Sensitivity) -> std::io::Result<()> {
    let elements = |name: &String| -> u64 {
        found.tensors.get(name).map_or(0, |tensor| tensor.shape.iter().product())
    };
    let mut lines: Vec<(f64, String)> = Vec::new();
    let width = found.groups.iter().map(|group| group.name.len()).max().unwrap_or(0).max(6);
    for group in &found.groups {
        let weights: u64 = group.tensors.iter().map(elements).sum();
        let measured: &BTreeMap<String, f64> = &group.measured;
        let greatest = measured.values().copied().fold(0.0, f64::max);
        let per_weight = greatest / weights.max(1) as f64;
        let figures: Vec<_> = measured.iter().map(|(ty, x)| format!("{ty} {x:.7}")).collect();
        let (weights, per_million) = (listing::count(weights), 1e6 * per_weight);
        let figures = figures.join("  ");
        lines.push((
            per_weight,
            format!("{:<width$} {weights:>8} {per_million:>14.7}  {figures}", group.name),
        ));
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    writeln!(
        out,
        "{} predictions in {} windows of {}",
        found.predictions, found.windows, found.text
    )?;
    writeln!(out, "{:<width$} {:>8} {:>14}  divergence as", "tensor", "weights", "per million")?;
    lines.iter().try_for_each(|(_, line)| writeln!(out, "{line}"))
}
