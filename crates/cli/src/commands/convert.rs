//! `gguf convert`: a checkpoint, a model from before GGUF, or a lone file of weights, to a GGUF.

mod flags;
mod legacy;
mod outputs;
mod settings;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use flags::Kind;
use gguf::ByteOrder;
use gguf_kit::convert::{ConvertOptions, OutputOptions, Plan, Planned, kind};
use gguf_kit::on_threads;
use gguf_kit::quantize::Part;
use gguf_legacy::Change;

use crate::commands::given::Given;
use crate::commands::quantize::{calibration, types};
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::sharding::ShardArgs;
use crate::{commands, document, listing, target};

const EXAMPLES: &str = "Examples:\n  \
     gguf convert Llama-3.2-1B -o llama.gguf --outtype q4_k_m\n  \
     gguf convert Qwen3-0.6B --outtype q8_0,q4_k_m\n  \
     gguf convert Qwen3-VL-2B --mmproj --outtype f16\n  \
     gguf convert hf:org/repo --out q8_0=large.gguf --out q4_k_m=small.gguf --resume\n  \
     gguf convert Qwen3-0.6B --outtype auto --dry-run";

/// Convert a checkpoint, or a model from before GGUF, to a GGUF.
///
/// A Hugging Face checkpoint or adapter, or a GGML, GGMF or GGJT file, becomes a GGUF of any type, or
/// several of them, in one pass.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{}\n{EXAMPLES}", target::table()))]
pub struct Args {
    // First: values are taken away as they are read.
    #[command(flatten)]
    given: Given,
    /// Directory with config.json, tokenizer and weights (safetensors or PyTorch), or with an
    /// adapter (LoRA); or a GGML, GGMF or GGJT file; or, with --architecture, one file of weights;
    /// or hf:org/repo[@revision], which is not downloaded.
    #[arg(value_name = "SOURCE", required_unless_present = "print_supported_models")]
    source: Option<String>,
    /// Of a lone file of weights what it is for: names, shapes and types stay as they are. Of a
    /// file from before GGUF the program it is of, instead of recognising it: llama, gpt2,
    /// starcoder, gptj, gptneox, dolly-v2, mpt, replit, bloom, falcon or whisper.
    #[arg(long, value_name = "NAME")]
    architecture: Option<String>,
    #[command(flatten)]
    outputs: outputs::Args,
    #[command(flatten)]
    shards: ShardArgs,
    /// Write the I-th of N shards of each output only, with about an N-th of the work: for several
    /// machines. The shards together are the model; `gguf merge` makes one file of them.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["split_max_tensors", "split_max_size",
        "no_tensor_first_split"])]
    part: Option<Part>,
    #[command(flatten)]
    types: types::Args,
    #[command(flatten)]
    calibration: calibration::Args,
    /// Name of the pre-tokenizer, instead of recognising it from tokenizer.json.
    #[arg(long, value_name = "NAME")]
    pre: Option<String>,
    /// Name of the model, instead of the one from model card or directory.
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// For an adapter: directory of the model that it is for, instead of the one it names.
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// For a draft (EAGLE 3, DFlash, DSpark): directory of the model that it is for, whose tokenizer it has.
    #[arg(long, value_name = "DIR")]
    target_model_dir: Option<PathBuf>,
    /// JSON file with general metadata that override those found.
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Write into the file what it was made from, by which version, with which settings.
    #[arg(long)]
    provenance: bool,
    /// Take a model of an unknown class for one of this class or architecture, such as
    /// LlamaForCausalLM or llama.
    #[arg(long, value_name = "FAMILY")]
    like: Option<String>,
    /// Leave out the tensors, and do without weights: a file for those that only tokenize.
    #[arg(long)]
    vocab_only: bool,
    /// Convert what sees and hears instead of the text model: encoders and their projector, as a file that
    /// programs load beside that of the text model. Its name begins with `mmproj-`.
    #[arg(long, conflicts_with_all = ["vocab_only", "pre"])]
    mmproj: bool,
    /// Write header and data in big-endian order, for machines that have it.
    #[arg(long)]
    bigendian: bool,
    /// Room for later edits of the header, so that they take an instant: N(K|M), at most 128M.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve)]
    reserve: u64,
    /// Go on where an earlier run was interrupted, and keep what is done if this one is.
    #[arg(long)]
    resume: bool,
    /// Threads [default: one per core].
    #[arg(short, long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// List the classes of models that can be converted, as a config.json names them, and their architectures.
    #[arg(long, exclusive = true)]
    print_supported_models: bool,
    /// Show the plan and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// The plan, or what was written, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    legacy: legacy::Flags,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let Some(source) = args.source.as_ref().filter(|_| !args.print_supported_models) else {
        return print_supported_models();
    };
    let kind = kind(source, args.architecture.as_deref())?;
    let outputs = args.outputs.wanted()?;
    flags::check(&args.given, kind, &outputs)?;
    on_threads(args.threads, || convert(args, source, kind, outputs))
}

fn convert(
    args: &Args,
    source: &str,
    kind: Kind,
    outputs: Vec<OutputOptions>,
) -> Result<(), Failure> {
    let progress = Progress::new();
    let mut plan = Plan::new(source, kind, &args.options(outputs)?, &progress)?;
    progress.finish();
    commands::print_notes(&plan.notes);
    let told = plan.notes.len();
    if args.dry_run {
        return show(args, kind, &plan);
    }
    let inputs = plan.inputs.iter().map(PathBuf::as_path).chain(args.types.inputs());
    let overwrite = args.force.protecting(inputs.chain(args.calibration.input()));
    let started = Instant::now();
    match plan.write(&overwrite, &commands::say_anew, &progress) {
        Err(gguf::Error::Interrupted) if args.resume => return Err(Failure::Paused),
        written => written?,
    }
    progress.finish();
    let time = started.elapsed();
    commands::print_notes(&plan.notes[told..]);
    let files = plan.files()?;
    let before: Vec<_> = files.iter().map(|(job, _)| commands::stored_bytes(job)).collect();
    let files = files.iter().map(|(job, path)| (job, path.as_path()));
    commands::say_written("convert/1", files, &before, time, args.json)
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
            calibration: self.calibration.choice(),
        })
    }
}

fn show(args: &Args, kind: Kind, plan: &Plan) -> Result<(), Failure> {
    let files = plan.files()?;
    // As strict as the real thing.
    files.iter().try_for_each(|(job, _)| job.header().map(drop))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let outputs = files.iter().map(|(job, path)| listing::plan_json(job, path));
        let mut json = listing::plans_json(outputs.collect());
        if kind == Kind::Legacy {
            let changes = plan.outputs.iter().flat_map(|output| &output.changes);
            json["changes"] = changes.map(legacy::change_json).collect();
        }
        document::print(&mut out, "convert/1", json)?;
        return Ok(());
    }
    for (job, path) in &files {
        write!(out, "{}", listing::plan_text(job, path))?;
    }
    for Planned { changes, .. } in &plan.outputs {
        for Change { name, from, to, fidelity } in changes {
            writeln!(out, "{name:<44} {from:<28} -> {to:<7} {fidelity}")?;
        }
    }
    Ok(())
}

/// One class a line with its architecture, `clip` if it has an encoder, as scripts read it.
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
