//! `gguf convert`: a checkpoint directory to a GGUF.

use std::io::Write;
use std::path::PathBuf;

use gguf::edit::reserve;
use gguf_convert::hf::{self, Conversion};
use gguf_convert::lora::peft;
use gguf_convert::provenance;
use gguf_convert::source::safetensors::Checkpoint;

use crate::commands::{self, quantize::types};
use crate::failure::Failure;
use crate::listing;
use crate::target::{self, Outtype};

/// Convert a Hugging Face checkpoint to a GGUF of any type, in one pass.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  gguf convert Llama-3.2-1B -o llama.gguf --outtype q4_k_m\n  \
                  gguf convert Qwen3-0.6B --outtype auto --dry-run",
    after_long_help = format!(
        "{}\nExamples:\n  gguf convert Llama-3.2-1B -o llama.gguf --outtype q4_k_m\n  \
         gguf convert Qwen3-0.6B --outtype auto --dry-run",
        target::table()
    )
)]
pub struct Args {
    /// Directory with config.json, tokenizer and safetensors, or with an adapter (LoRA).
    source: PathBuf,
    /// File to write; without it, a name by the naming convention, in the source directory.
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Type of the output: a mix such as q4_k_m, a float type, or auto for the 16-bit type of the
    /// checkpoint (--help lists all).
    #[arg(long, default_value = "auto", value_name = "TYPE")]
    outtype: Outtype,
    #[command(flatten)]
    types: types::Args,
    /// Name of the pre-tokenizer, instead of recognising it from tokenizer.json.
    #[arg(long, value_name = "NAME")]
    pre: Option<String>,
    /// Name of the model, instead of the one from model card or directory.
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// For an adapter: directory of the model that it is for, instead of the one it names.
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
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
    /// Room for later edits of the header, so that they take an instant: N(K|M|G).
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve)]
    reserve: u64,
    /// Show the plan and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run, the plan as JSON.
    #[arg(long, requires = "dry_run")]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let options = hf::Options {
        outtype: args.outtype.target(),
        pre: args.pre.clone(),
        model_name: args.model_name.clone(),
        metadata: args.metadata.clone(),
        quantization: args.types.options()?,
        like: args.like.clone(),
    };
    if args.source.join(peft::CONFIG).is_file() {
        let checkpoint = Checkpoint::open_file(&args.source.join(peft::WEIGHTS))?;
        let base = peft::base_dir(&args.source, args.base.as_deref())?;
        // Adapters are often converted beside a configuration alone.
        let weights = Checkpoint::open(&base).ok();
        let conversion = peft::plan(&args.source, &checkpoint, &base, weights.as_ref(), &options)?;
        return write(args, conversion);
    }
    if args.base.is_some() {
        return Err(Failure::Usage(format!(
            "--base is for adapters, and {} holds no {}",
            args.source.display(),
            peft::CONFIG
        )));
    }
    let checkpoint = Checkpoint::open(&args.source)?;
    let mut conversion = hf::plan(&args.source, &checkpoint, &options)?;
    if args.provenance {
        let metadata = &mut conversion.job.metadata;
        provenance::write(metadata, &args.source, &checkpoint, &settings(args))?;
    }
    write(args, conversion)
}

/// What was asked for and decides the content of the output.
fn settings(args: &Args) -> String {
    let outtype = args.outtype.target().map_or("auto".to_owned(), |target| target.to_string());
    let texts = [("--pre", &args.pre), ("--model-name", &args.model_name)];
    let texts = texts.into_iter().filter_map(|(flag, text)| Some((flag, text.as_ref()?)));
    texts.fold(format!("--outtype {outtype}"), |all, (flag, text)| format!("{all} {flag} {text}"))
}

fn write(args: &Args, mut conversion: Conversion) -> Result<(), Failure> {
    reserve(&mut conversion.job.metadata, args.reserve);
    commands::print_notes(&conversion.notes);
    let output = match &args.output {
        Some(path) if path.is_dir() => path.join(&conversion.file_name),
        Some(path) => path.clone(),
        None => args.source.join(&conversion.file_name),
    };
    if args.dry_run {
        // As strict as the real thing.
        conversion.job.header()?;
        let mut out = std::io::stdout().lock();
        if args.json {
            let mut plan = listing::plan_json(&conversion.job);
            plan["output"] = output.display().to_string().into();
            writeln!(out, "{plan:#}")?;
        } else {
            write!(out, "{}", listing::plan_text(&conversion.job))?;
            writeln!(out, "would write {}", output.display())?;
        }
        return Ok(());
    }
    commands::write(&conversion.job, &output, commands::all_cores())
}
