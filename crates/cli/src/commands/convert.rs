//! `gguf convert`: converts checkpoints, legacy GGML files and single weight files to GGUF.

mod flags;
mod legacy;
mod outputs;
mod settings;

use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use flags::Kind;
use gguf::ByteOrder;
use gguf_kit::convert::{ConvertOptions, OutputOptions, Plan, Planned, kind};
use gguf_kit::quantize::Part;
use gguf_legacy::Change;
use gguf_pipeline::Job;

use crate::commands::given_flags::GivenFlags;
use crate::commands::hub_outputs::HubOutputs;
use crate::commands::quantize::{calibration, types};
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::shard_args::ShardArgs;
use crate::threads::on_threads;
use crate::{commands, document, listing, outtype, terminal};

const EXAMPLES: &str = "Examples:\n  \
     gguf convert Llama-3.2-1B -o llama.gguf --outtype q4_k_m\n  \
     gguf convert Qwen3-0.6B --outtype q8_0,q4_k_m\n  \
     gguf convert Qwen3-VL-2B --mmproj --outtype f16\n  \
     gguf convert hf:org/repo --out q8_0=large.gguf --out q4_k_m=small.gguf --resume\n  \
     gguf convert Qwen3-0.6B --outtype auto --dry-run";

/// Convert a checkpoint or a legacy GGML file to GGUF.
///
/// Converts a Hugging Face checkpoint or LoRA adapter, or a GGML, GGMF or GGJT file, to one or several GGUF
/// types in a single pass.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{}\n{EXAMPLES}", outtype::table()))]
pub struct Args {
    // Must come first: clap removes values as it reads them.
    #[command(flatten)]
    given: GivenFlags,
    /// Directory with config.json, tokenizer and weights (safetensors or PyTorch), or with a LoRA adapter; a
    /// GGML, GGMF or GGJT file; a single weight file (with --architecture); or hf:org/repo[@revision], which is
    /// streamed.
    #[arg(value_name = "SOURCE", required_unless_present = "print_supported_models")]
    source: Option<String>,
    /// Architecture of a single weight file (tensor names, shapes and types are kept), or of a legacy file that
    /// cannot be detected: llama, gpt2, starcoder, gptj, gptneox, dolly-v2, mpt, replit, bloom, falcon or
    /// whisper.
    #[arg(long, value_name = "NAME")]
    architecture: Option<String>,
    #[command(flatten)]
    outputs: outputs::Args,
    #[command(flatten)]
    shards: ShardArgs,
    /// Write only shard I of N of each output, for distributed conversion. `gguf merge` joins the shards.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["split_max_tensors", "split_max_size",
        "no_tensor_first_split"])]
    part: Option<Part>,
    #[command(flatten)]
    types: types::Args,
    #[command(flatten)]
    calibration: calibration::Args,
    /// Pre-tokenizer name [default: detected from tokenizer.json].
    #[arg(long, value_name = "NAME", help_heading = "Advanced")]
    pre: Option<String>,
    /// Model name [default: from the model card or the directory].
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// Base model directory of an adapter [default: the model that the adapter names].
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Target model directory of a draft model (EAGLE 3, DFlash, DSpark), for the tokenizer.
    #[arg(long, value_name = "DIR", help_heading = "Advanced")]
    target_model_dir: Option<PathBuf>,
    /// JSON file with general metadata that overrides the detected metadata.
    #[arg(long, value_name = "FILE", help_heading = "Advanced")]
    metadata: Option<PathBuf>,
    /// Record source, version and settings in the metadata of the output.
    #[arg(long, help_heading = "Advanced")]
    provenance: bool,
    /// Treat an unknown model class as FAMILY: a class or architecture, such as LlamaForCausalLM or llama.
    #[arg(long, value_name = "FAMILY", help_heading = "Advanced")]
    like: Option<String>,
    /// Write only metadata and tokenizer. Needs no weights.
    #[arg(long, help_heading = "Advanced")]
    vocab_only: bool,
    /// Convert the vision or audio encoder and its projector instead of the text model. The file name begins
    /// with `mmproj-`.
    #[arg(long, conflicts_with_all = ["vocab_only", "pre"])]
    mmproj: bool,
    /// Write the file in big-endian byte order.
    #[arg(long, help_heading = "Advanced")]
    bigendian: bool,
    /// Header padding for fast in-place edits: N(K|M), at most 128M.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve, help_heading = "Advanced")]
    reserve: u64,
    /// Resume an interrupted run, and keep finished work if this run is interrupted.
    #[arg(long)]
    resume: bool,
    /// Number of threads [default: one per core].
    #[arg(short, long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// List supported model classes, as in config.json, and their architectures.
    #[arg(long, exclusive = true)]
    print_supported_models: bool,
    /// Show the plan without writing anything.
    #[arg(long)]
    dry_run: bool,
    /// Print the plan, or the written files, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    legacy: legacy::Flags,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    run_with_report(args, true).map(drop)
}

/// Converts, and returns the written files; reports them if `reports` says so.
pub fn run_with_report(args: &Args, reports: bool) -> Result<Vec<PathBuf>, Failure> {
    let Some(source) = args.source.as_ref().filter(|_| !args.print_supported_models) else {
        return print_supported_models().map(|()| Vec::new());
    };
    let kind = kind(source, args.architecture.as_deref())?;
    let mut hub = HubOutputs::default();
    let outputs = args.outputs.wanted(&mut hub)?;
    flags::check(&args.given, kind, &outputs)?;
    on_threads(args.threads, || convert(args, source, kind, outputs, hub, reports))
}

fn convert(
    args: &Args,
    source: &str,
    kind: Kind,
    outputs: Vec<OutputOptions>,
    hub: HubOutputs,
    reports: bool,
) -> Result<Vec<PathBuf>, Failure> {
    let progress = Progress::new();
    let mut plan = Plan::new(source, kind, &args.options(outputs)?, &progress)?;
    progress.finish();
    terminal::notes(&plan.notes);
    let printed = plan.notes.len();
    if args.dry_run {
        return show(args, kind, &plan, &hub).map(|()| Vec::new());
    }
    let files = plan.files()?;
    hub.prepare(files.iter().map(|(_, path)| path.as_path()), &args.force)?;
    drop(files);
    let inputs = plan.inputs.iter().map(PathBuf::as_path).chain(args.types.inputs());
    let overwrite = args.force.protecting(inputs.chain(args.calibration.inputs()));
    let started = Instant::now();
    match plan.write(&overwrite, &commands::note_restart, &progress) {
        Err(gguf::Error::Interrupted) if args.resume => return Err(Failure::Paused),
        written => written?,
    }
    progress.finish();
    let time = started.elapsed();
    terminal::notes(&plan.notes[printed..]);
    let files = plan.files()?;
    let written = files.iter().map(|(_, path)| path.clone()).collect();
    if !reports {
        return Ok(written);
    }
    let before: Vec<_> = files.iter().map(|(job, _)| commands::stored_bits(job)).collect();
    let shown: Vec<_> = files.iter().map(|(_, path)| hub.shown(path)).collect();
    let named = files.iter().zip(&shown).map(|((job, _), shown)| (job, shown.as_path()));
    commands::report_written("convert/2", named, &before, time, args.json)?;
    hub.upload(files.iter().map(|(_, path)| path.as_path()), &args.force)?;
    if let ([(job, _)], [path]) = (&files[..], &shown[..])
        && kind == Kind::Checkpoint
        && std::io::stderr().is_terminal()
    {
        say_what_is_next(job, path);
    }
    Ok(written)
}

/// Names the commands that use a converted model, on a terminal.
fn say_what_is_next(job: &Job, path: &Path) {
    let path = path.display();
    let is_float = job.items.iter().all(|item| !item.target.is_quantized());
    let smaller = format!("gguf quantize {path} q4_k_m");
    let commands = [format!("gguf check {path}"), format!("gguf chat {path}")];
    let commands: Vec<_> = commands.into_iter().chain(is_float.then_some(smaller)).collect();
    terminal::dim(format!("next: {}", commands.join(", ")));
}

impl Args {
    fn options(&self, outputs: Vec<OutputOptions>) -> Result<ConvertOptions, Failure> {
        Ok(ConvertOptions {
            outputs,
            split: self.shards.options(),
            part: self.part,
            vocab_only: self.vocab_only,
            mmproj: self.mmproj,
            order: if self.bigendian { ByteOrder::Big } else { ByteOrder::Little },
            resume: self.resume,
            quantization: self.types.options()?,
            imatrix: self.types.imatrix(),
            architecture: self.architecture.clone(),
            pre: self.pre.clone(),
            model_name: self.model_name.clone(),
            like: self.like.clone(),
            metadata: self.metadata.clone(),
            base: self.base.clone(),
            target_model_dir: self.target_model_dir.clone(),
            provenance: self.provenance.then_some(settings::render),
            overrides: self.legacy.overrides(),
            metadata_dir: self.legacy.metadata_dir.clone(),
            reserve: self.reserve,
            calibration: self.calibration.choice()?,
        })
    }
}

fn show(args: &Args, kind: Kind, plan: &Plan, hub: &HubOutputs) -> Result<(), Failure> {
    let files = plan.files()?;
    // Validates as strictly as writing does.
    files.iter().try_for_each(|(job, _)| job.header().map(drop))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let outputs = files.iter().map(|(job, path)| listing::plan_json(job, &hub.shown(path)));
        let mut json = listing::plans_json(outputs.collect());
        if kind == Kind::Legacy {
            let changes = plan.outputs.iter().flat_map(|output| &output.changes);
            json["changes"] = changes.map(legacy::change_json).collect();
        }
        document::print(&mut out, "convert/2", json)?;
        return Ok(());
    }
    for (job, path) in &files {
        write!(out, "{}", listing::plan_text(job, &hub.shown(path)))?;
    }
    for Planned { changes, .. } in &plan.outputs {
        for Change { name, from, to, fidelity } in changes {
            writeln!(out, "{name:<44} {from:<28} -> {to:<7} {fidelity}")?;
        }
    }
    Ok(())
}

/// Prints one class per line with its architecture, or `clip` if it has an encoder. Scripts parse these lines.
fn print_supported_models() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let mut classes = gguf_convert::architectures_of_classes();
    classes.extend(gguf_convert::encoder_classes().into_iter().map(|class| (class, "clip")));
    classes.sort_unstable();
    for (class, architecture) in classes {
        writeln!(out, "{class:<40} {architecture}")?;
    }
    Ok(())
}
