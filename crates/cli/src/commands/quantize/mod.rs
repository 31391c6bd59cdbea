//! `gguf quantize`: a GGUF to a smaller one.

pub mod calibration;
pub mod importance;
pub mod types;
mod words;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gguf_kit::quantize::{Goal, Part, Plan, QuantizeRequest, Split};
use gguf_kit::{Opened, on_threads, open};
use gguf_quantize::budget::Budget;
use gguf_quantize::recipe::Target;
use gguf_quantize::sensitivity::Sensitivity;
use words::{Wanted, Words};

use crate::commands::given::Given;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::sharding::ShardArgs;
use crate::{commands, document, listing, target};

const EXAMPLES: &str = "Examples:\n  \
     gguf quantize model-f16.gguf model-q4.gguf q4_k_m\n  \
     gguf quantize --tensor-type 'ffn_down=q6_k' model-f16.gguf out.gguf Q4_K_M 8\n  \
     gguf quantize model-f16.gguf --out Q4_K_M=small.gguf --out Q8_0=large.gguf\n  \
     gguf quantize --calibrate text.txt model-f16.gguf model-q4.gguf Q4_K_M\n  \
     gguf quantize --part 2/4 model-f16.gguf model-q4.gguf Q4_K_M";

/// Flags that say how much goes to one shard.
const SHARDS: [&str; 3] = ["split_max_tensors", "split_max_size", "no_tensor_first_split"];

/// Quantize a GGUF to a mix or a single type.
#[derive(clap::Args)]
#[command(
    override_usage = "gguf quantize [OPTIONS] <IN> [OUT] <TYPE> [THREADS]\n       \
                      gguf quantize [OPTIONS] <IN> --out <TYPE=PATH>... [THREADS]",
    after_help = EXAMPLES,
    after_long_help = format!("{}\n{EXAMPLES}", target::table())
)]
pub struct Args {
    // First: values are taken away as they are read.
    #[command(flatten)]
    given: Given,
    /// Input file, output file or directory (may be left out: the name of the input with TYPE,
    /// beside it), type or types with commas between them, and number of threads (may be left out:
    /// one per core).
    #[arg(required = true, num_args = 1..=4, value_names = ["IN", "OUT"])]
    words: Vec<String>,
    /// Another output of the same pass over the input; may be repeated.
    #[arg(long, value_name = "TYPE=PATH", value_parser = words::parse_out)]
    out: Vec<Wanted>,
    #[command(flatten)]
    types: types::Args,
    #[command(flatten)]
    calibration: calibration::Args,
    /// Quantize again what is quantized already.
    #[arg(long)]
    allow_requantize: bool,
    /// Instead of a type: choose one per tensor so that the file has at most this size, N(K|M|G),
    /// and as little as possible is lost.
    #[arg(long, value_name = "SIZE", conflicts_with = "pure", value_parser = listing::parse_size)]
    target_size: Option<u64>,
    /// The same with at most so many bits per weight.
    #[arg(long, value_name = "BITS", conflicts_with_all = ["target_size", "pure"],
        allow_negative_numbers = true, value_parser = listing::parse_above_0::<f64>)]
    target_bpw: Option<f64>,
    /// With a size target: go by what types of tensors do to predictions, which `gguf sensitivity` has
    /// measured, and not by what the weights lose. With --calibrate that is measured if it is not given.
    #[arg(long, value_name = "FILE")]
    sensitivity: Option<PathBuf>,
    /// Save which tensor gets which type, as a file for --tensor-type-file.
    #[arg(long, value_name = "FILE")]
    save_recipe: Option<PathBuf>,
    /// Leave out these blocks, by number from 0; those that stay are numbered anew.
    #[arg(long, value_name = "L0,L1,L2...", value_delimiter = ',')]
    prune_layers: Vec<u64>,
    #[command(flatten)]
    shards: ShardArgs,
    /// Write the same shards as the input has.
    #[arg(long, conflicts_with = "part", conflicts_with_all = SHARDS)]
    keep_split: bool,
    /// Write the I-th of N shards of the output only, with about an N-th of the work: for several
    /// machines. The shards together are the model; `gguf merge` makes one file of them.
    #[arg(long, value_name = "I/N", conflicts_with_all = SHARDS)]
    part: Option<Part>,
    /// Go on where an earlier run was interrupted, and keep what is done if this one is.
    #[arg(long)]
    resume: bool,
    /// The most memory for rows of one tensor, in MiB, as for `llama-quantize`. Here no more than
    /// some MiB per thread are ever held, whatever is said.
    #[arg(long, value_name = "MIB")]
    max_buffer_size: Option<std::num::NonZeroU64>,
    /// Room for later edits of the header, so that they take an instant: N(K|M), at most 128M.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve)]
    reserve: u64,
    /// Number of threads, as the last word is too; one per core without either.
    #[arg(short, long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Show the plan, with sizes and an estimate of the time, and write nothing but the file of
    /// --save-recipe.
    #[arg(long)]
    dry_run: bool,
    /// The plan, or what was written, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

impl Args {
    fn budget(&self) -> Option<Budget> {
        let bits = self.target_bpw.map(Budget::BitsPerWeight);
        bits.or(self.target_size.map(Budget::FileBytes))
    }

    /// The files that are read beside the model.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.types.inputs().chain(self.sensitivity.as_deref()).chain(self.calibration.input())
    }

    fn options(&self, words: &Words, opened: &Opened) -> Result<QuantizeRequest, Failure> {
        let mut quantization = self.types.options()?;
        if let Some(imatrix) = self.types.imatrix() {
            imatrix.add_to(&mut quantization)?;
        }
        if let Some(path) = &self.sensitivity {
            quantization.sensitivity = Some(Sensitivity::open(path)?);
        }
        quantization.recipe.keep_order = self.keep_split;
        quantization.allow_requantize = self.allow_requantize;
        quantization.prune_layers = self.prune_layers.iter().copied().collect();
        let split = match self.part {
            Some(part) => Split::Part(part),
            None if self.keep_split => Split::AsModel,
            None => self.shards.options().map_or(Split::None, Split::Within),
        };
        Ok(QuantizeRequest {
            outputs: words
                .outputs
                .iter()
                .map(|wanted| wanted.named(opened, &words.input))
                .collect::<Result<_, _>>()?,
            quantization,
            split,
            reserve: self.reserve,
            save_recipe: self.save_recipe.clone(),
            resume: self.resume,
            calibration: self.calibration.choice(),
        })
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    run_and_tell(args, None)
}

/// Says what is planned, before it is done.
pub type Tell<'t> = &'t (dyn Fn(&Plan) -> Result<(), Failure> + Sync);

/// The same, with other words about what is done.
pub fn run_and_tell(args: &Args, tell: Option<Tell<'_>>) -> Result<(), Failure> {
    let words = Words::parse(&args.words, &args.out, args.budget())?;
    if args.sensitivity.is_some() && args.budget().is_none() {
        let what = "--sensitivity says what to choose: give --target-size or --target-bpw too";
        return Err(Failure::Usage(what.into()));
    }
    let copies = |wanted: &Wanted| matches!(wanted.goal, Goal::Target(Target::Copy));
    let says_how = args.given.find(types::FLAGS).or_else(|| args.given.find(calibration::FLAGS));
    if let Some(flag) = says_how.filter(|_| words.outputs.iter().all(copies)) {
        return Err(Failure::Usage(format!(
            "{flag} says how weights become blocks, and `copy` leaves them as they are: name another \
             type"
        )));
    }
    if words.threads.is_some() && args.threads.is_some() {
        return Err(Failure::Usage("the number of threads is given twice".into()));
    }
    on_threads(words.threads.or(args.threads), || quantize(args, &words, tell))
}

fn quantize(args: &Args, words: &Words, tell: Option<Tell<'_>>) -> Result<(), Failure> {
    let opened = open(&words.input)?;
    let options = args.options(words, &opened)?;
    let overwrite = args.force.protecting(args.inputs().chain(opened.files()));
    if !args.dry_run {
        options.check_outputs(&overwrite)?;
    }
    let progress = Progress::new();
    let mut plan = Plan::new(&opened, &words.input, &options, &progress)?;
    progress.finish();
    commands::print_notes(&plan.notes);
    let told = plan.notes.len();
    tell.map_or(Ok(()), |tell| tell(&plan))?;
    if args.dry_run {
        if tell.is_none() {
            show(args, &plan)?;
        }
        return Ok(plan.write_recipe(&overwrite)?);
    }
    let before: Vec<_> = plan.files().map(|(job, _)| commands::stored_bytes(job)).collect();
    let started = Instant::now();
    match plan.write(&overwrite, &commands::say_anew, &progress) {
        Err(gguf::Error::Interrupted) if args.resume => return Err(Failure::Paused),
        written => written?,
    }
    progress.finish();
    let time = started.elapsed();
    commands::print_notes(&plan.notes[told..]);
    if tell.is_some() {
        return Ok(());
    }
    commands::say_written("quantize/1", plan.files(), &before, time, args.json)
}

/// The plan, and how long it would take.
fn show(args: &Args, plan: &Plan) -> Result<(), Failure> {
    // As strict as the real thing.
    plan.data_len()?;
    let (jobs, seconds): (Vec<_>, _) = (plan.files().collect(), plan.seconds());
    let mut out = std::io::stdout().lock();
    if args.json {
        let outputs = jobs.iter().map(|(job, path)| listing::plan_json(job, path));
        let mut whole = listing::plans_json(outputs.collect());
        whole["seconds"] = seconds.into();
        document::print(&mut out, "quantize/1", whole)?;
    } else {
        let threads = listing::plural(rayon::current_num_threads(), "thread");
        let time = format!("about {seconds:.0} s of encoding on {threads}");
        write!(out, "{}", listing::plans_text(&jobs, &time))?;
    }
    Ok(())
}
