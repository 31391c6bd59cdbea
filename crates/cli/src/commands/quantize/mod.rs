//! `gguf quantize`: quantizes a GGUF.

mod arguments;
pub mod calibration;
pub mod imatrix;
pub mod types;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arguments::{Positionals, RequestedOutput};
use gguf_kit::quantize::{Calibration, Goal, Part, Plan, QuantizeOutput, QuantizeRequest, Split};
use gguf_kit::{Opened, open};
use gguf_quantize::budget::Budget;
use gguf_quantize::recipe::Target;
use gguf_quantize::sensitivity::Sensitivity;

use crate::commands::calibration_text;
use crate::commands::given_flags::GivenFlags;
use crate::commands::hub_outputs::HubOutputs;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::shard_args::ShardArgs;
use crate::threads::on_threads;
use crate::{commands, document, listing, outtype, terminal};

const EXAMPLES: &str = "Examples:\n  \
     gguf quantize model-f16.gguf model-q4.gguf q4_k_m\n  \
     gguf quantize --tensor-type 'ffn_down=q6_k' model-f16.gguf out.gguf Q4_K_M 8\n  \
     gguf quantize model-f16.gguf --out Q4_K_M=small.gguf --out Q8_0=large.gguf\n  \
     gguf quantize --calibrate text.txt model-f16.gguf model-q4.gguf Q4_K_M\n  \
     gguf quantize model-f16.gguf model-q4.gguf Q4_K_M --calibrate\n  \
     gguf quantize --calibrate self model-f16.gguf model-q4.gguf Q4_K_M\n  \
     gguf quantize --part 2/4 model-f16.gguf model-q4.gguf Q4_K_M\n  \
     gguf quantize model-f16.gguf hf:me/My-Model-GGUF Q4_K_M,Q8_0";

/// Flags that limit the size of shards.
const SHARDS: [&str; 3] = ["split_max_tensors", "split_max_size", "no_tensor_first_split"];

/// Quantize a GGUF.
#[derive(clap::Args)]
#[command(
    override_usage = "gguf quantize [OPTIONS] <IN> [OUT] <TYPE> [THREADS]\n       \
                      gguf quantize [OPTIONS] <IN> --out <TYPE=PATH>... [THREADS]",
    after_help = EXAMPLES,
    after_long_help = format!("{}\n{EXAMPLES}", outtype::table())
)]
pub struct Args {
    // Must come first: clap removes values as it reads them.
    #[command(flatten)]
    given: GivenFlags,
    /// Input file; output file, directory or repository of the Hub (hf:me/repo) [default: named after input and type,
    /// beside the input]; type, or several separated by commas; and number of threads [default: one per core].
    #[arg(required = true, num_args = 1..=4, value_names = ["IN", "OUT"])]
    words: Vec<String>,
    /// Output file, directory or repository, instead of OUT.
    #[arg(short, long, alias = "outfile", value_name = "OUT", conflicts_with = "out")]
    output: Option<String>,
    /// Additional output from the same pass. May be repeated.
    #[arg(long, value_name = "TYPE=PATH", value_parser = arguments::parse_out)]
    out: Vec<RequestedOutput>,
    #[command(flatten)]
    types: types::Args,
    #[command(flatten)]
    calibration: calibration::Args,
    /// Allow requantizing tensors that are already quantized.
    #[arg(long)]
    allow_requantize: bool,
    /// Choose the type of each tensor so that the file has at most this size, N(K|M|G), with minimal loss.
    /// Replaces TYPE.
    #[arg(long, value_name = "SIZE", conflicts_with = "pure", value_parser = listing::parse_size)]
    target_size: Option<u64>,
    /// Choose the type of each tensor within this many bits per weight. Replaces TYPE.
    #[arg(long, value_name = "BITS", conflicts_with_all = ["target_size", "pure"],
        allow_negative_numbers = true, value_parser = listing::parse_positive::<f64>)]
    target_bpw: Option<f64>,
    /// Minimize the KL divergence measured by `gguf sensitivity` instead of the weight error, for a size
    /// target. With --calibrate, measured automatically if not given.
    #[arg(long, value_name = "FILE")]
    sensitivity: Option<PathBuf>,
    /// Save the type of each tensor, as a file for --tensor-type-file.
    #[arg(long, value_name = "FILE", help_heading = "Advanced")]
    save_recipe: Option<PathBuf>,
    /// Remove these blocks, numbered from 0. The remaining blocks are renumbered.
    #[arg(long, value_name = "L0,L1,L2...", value_delimiter = ',', help_heading = "Advanced")]
    prune_layers: Vec<u64>,
    #[command(flatten)]
    shards: ShardArgs,
    /// Split the output into the same shards as the input.
    #[arg(long, conflicts_with = "part", conflicts_with_all = SHARDS)]
    keep_split: bool,
    /// Write only shard I of N of the output, for distributed quantization. `gguf merge` joins the shards.
    #[arg(long, value_name = "I/N", conflicts_with_all = SHARDS)]
    part: Option<Part>,
    /// Resume an interrupted run, and keep finished work if this run is interrupted.
    #[arg(long)]
    resume: bool,
    /// Ignored; accepted for compatibility with `llama-quantize`.
    #[arg(long, value_name = "MIB", help_heading = "Advanced", hide_short_help = true)]
    max_buffer_size: Option<std::num::NonZeroU64>,
    /// Header padding for fast in-place edits: N(K|M), at most 128M.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve, help_heading = "Advanced")]
    reserve: u64,
    /// Number of threads; also accepted as the last argument [default: one per core].
    #[arg(short, long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Show the plan, with sizes and an estimated time. Writes nothing except the file of --save-recipe.
    #[arg(long)]
    dry_run: bool,
    /// Print the plan, or the written files, as JSON.
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

    /// Returns the positional arguments, with outputs for the Hub at their local paths.
    fn local_words(&self, hub: &mut HubOutputs) -> Result<Vec<String>, Failure> {
        let mut words = self.words.clone();
        if let Some(output) = &self.output {
            words.insert(1, output.clone());
        }
        for word in words.iter_mut().skip(1).filter(|word| word.starts_with("hf:")) {
            *word = hub.local_path(Path::new(&*word))?.to_string_lossy().into_owned();
        }
        Ok(words)
    }

    /// Returns the outputs of --out, those for the Hub at their local paths.
    fn local_outputs(&self, hub: &mut HubOutputs) -> Result<Vec<RequestedOutput>, Failure> {
        self.out.iter().map(|output| output.locally(hub)).collect()
    }

    /// Returns the input files other than the model.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.types.inputs().chain(self.sensitivity.as_deref()).chain(self.calibration.inputs())
    }

    fn options(&self, words: &Positionals, opened: &Opened) -> Result<QuantizeRequest, Failure> {
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
        let outputs: Vec<_> = words
            .outputs
            .iter()
            .map(|output| output.named(opened, &words.input))
            .collect::<Result<_, _>>()?;
        Ok(QuantizeRequest {
            calibration: self.calibration(&outputs, words, opened)?,
            outputs,
            quantization,
            split,
            reserve: self.reserve,
            save_recipe: self.save_recipe.clone(),
            resume: self.resume,
        })
    }

    /// Returns the calibration, if requested. Writes its text first if that is left to the model.
    fn calibration(
        &self,
        outputs: &[QuantizeOutput],
        words: &Positionals,
        opened: &Opened,
    ) -> Result<Option<Calibration>, Failure> {
        let (Some(tokens), Some(output)) = (self.calibration.self_tokens(), outputs.first()) else {
            return self.calibration.choice();
        };
        if self.dry_run {
            // The sizes do not depend on the text; a size target measures with it.
            return match self.budget() {
                None => Ok(None),
                Some(_) => self.calibration.choice(),
            };
        }
        let text =
            calibration_text::beside(&output.path, opened, &words.input, tokens, &self.force)?;
        self.calibration.by_texts(&text).map(Some)
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    run_with_report(args, None)
}

/// Reports the plan before it runs.
pub type ReportPlan<'t> = &'t (dyn Fn(&Plan) -> Result<(), Failure> + Sync);

/// Quantizes, with `report` instead of the usual output.
pub fn run_with_report(args: &Args, report: Option<ReportPlan<'_>>) -> Result<(), Failure> {
    let mut hub = HubOutputs::default();
    let words = Positionals::parse(
        &args.local_words(&mut hub)?,
        &args.local_outputs(&mut hub)?,
        args.budget(),
    )?;
    if args.sensitivity.is_some() && args.budget().is_none() {
        let what = "--sensitivity requires --target-size or --target-bpw";
        return Err(Failure::Usage(what.into()));
    }
    let copies = |output: &RequestedOutput| matches!(output.goal, Goal::Target(Target::Copy));
    let quantizing_flag =
        args.given.find(types::FLAGS).or_else(|| args.given.find(calibration::FLAGS));
    if let Some(flag) = quantizing_flag.filter(|_| words.outputs.iter().all(copies)) {
        return Err(Failure::Usage(format!(
            "{flag} needs a quantized type, and `copy` keeps the types of the input"
        )));
    }
    if words.threads.is_some() && args.threads.is_some() {
        return Err(Failure::Usage("the number of threads is given twice".into()));
    }
    on_threads(words.threads.or(args.threads), || quantize(args, &words, hub, report))
}

fn quantize(
    args: &Args,
    words: &Positionals,
    hub: HubOutputs,
    report: Option<ReportPlan<'_>>,
) -> Result<(), Failure> {
    let opened = open(&words.input)?;
    let options = args.options(words, &opened)?;
    let overwrite = args.force.protecting(args.inputs().chain(opened.files()));
    if !args.dry_run {
        options.check_outputs(&overwrite)?;
    }
    let progress = Progress::new();
    let mut plan = Plan::new(&opened, &words.input, &options, &progress)?;
    progress.finish();
    terminal::notes(&plan.notes);
    let printed = plan.notes.len();
    report.map_or(Ok(()), |report| report(&plan))?;
    if args.dry_run {
        if report.is_none() {
            show(args, &plan, &hub)?;
        }
        return Ok(plan.write_recipe(&overwrite)?);
    }
    hub.prepare(plan.files().map(|(_, path)| path), &args.force)?;
    let before: Vec<_> = plan.files().map(|(job, _)| commands::stored_bits(job)).collect();
    let started = Instant::now();
    match plan.write(&overwrite, &commands::note_restart, &progress) {
        Err(gguf::Error::Interrupted) if args.resume => return Err(Failure::Paused),
        written => written?,
    }
    progress.finish();
    let time = started.elapsed();
    terminal::notes(&plan.notes[printed..]);
    if report.is_none() {
        let shown: Vec<_> = plan.files().map(|(_, path)| hub.shown(path)).collect();
        let files = plan.files().zip(&shown).map(|((job, _), shown)| (job, shown.as_path()));
        commands::report_written("quantize/2", files, &before, time, args.json)?;
    }
    hub.upload(plan.files().map(|(_, path)| path), &args.force)
}

/// Prints the plan and the estimated time.
fn show(args: &Args, plan: &Plan, hub: &HubOutputs) -> Result<(), Failure> {
    // Validates as strictly as writing does.
    plan.data_len()?;
    let shown: Vec<_> = plan.files().map(|(_, path)| hub.shown(path)).collect();
    let jobs: Vec<_> =
        plan.files().zip(&shown).map(|((job, _), shown)| (job, shown.as_path())).collect();
    let seconds = plan.seconds();
    let mut out = std::io::stdout().lock();
    if args.json {
        let outputs = jobs.iter().map(|(job, path)| listing::plan_json(job, path));
        let mut whole = listing::plans_json(outputs.collect());
        whole["seconds"] = seconds.into();
        document::print(&mut out, "quantize/2", whole)?;
    } else {
        let threads = listing::plural(rayon::current_num_threads(), "thread");
        let time = format!("estimated time: {seconds:.0} s on {threads}");
        write!(out, "{}", listing::plans_text(&jobs, &time))?;
    }
    Ok(())
}
