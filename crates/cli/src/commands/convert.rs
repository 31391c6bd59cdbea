//! `gguf convert`: a checkpoint, a model from before GGUF, or a lone file of weights, to a GGUF.

mod flags;
mod legacy;

use std::io::Write;
use std::path::{Path, PathBuf};

use flags::Kind;
use gguf_kit::convert::{Options, Plan, kind};
use gguf_legacy::Change;

use crate::commands::given::Given;
use crate::commands::quantize::types;
use crate::failure::Failure;
use crate::force::Force;
use crate::target::{self, Outtype};
use crate::{commands, listing};

/// Convert a Hugging Face checkpoint, or a GGML, GGMF or GGJT file, to a GGUF of any type, in one
/// pass.
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
    // First: values are taken away as they are read.
    #[command(flatten)]
    given: Given,
    /// Directory with config.json, tokenizer and weights (safetensors or PyTorch), or with an
    /// adapter (LoRA); or a GGML, GGMF or GGJT file; or, with --architecture, one file of weights;
    /// or hf:org/repo[@revision], which is not downloaded.
    #[arg(value_name = "SOURCE")]
    source: String,
    /// Of a lone file of weights what it is for: names, shapes and types stay as they are. Of a
    /// file from before GGUF the program it is of, instead of recognising it: llama, gpt2,
    /// starcoder, gptj, gptneox, dolly-v2, mpt, replit, bloom, falcon or whisper.
    #[arg(long, value_name = "NAME")]
    architecture: Option<String>,
    /// File to write; without it, a name by the naming convention, in the source directory, or
    /// here if the source is not on this machine.
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Type of the output: a mix such as q4_k_m, a float type, or auto for what the checkpoint
    /// has, in 16 bits where GGUF cannot hold it as it is (--help lists all).
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
    /// Room for later edits of the header, so that they take an instant: N(K|M), at most 128M.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve)]
    reserve: u64,
    /// Show the plan and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run, the plan as JSON.
    #[arg(long, requires = "dry_run")]
    json: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    legacy: legacy::Flags,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let kind = kind(&args.source, args.architecture.as_deref())?;
    flags::check(&args.given, kind, args.outtype.target())?;
    let options = args.options()?;
    let plan = Plan::new(&args.source, kind, &options)?;
    commands::print_notes(&plan.notes);
    let output = match &args.output {
        Some(path) if path.is_dir() => path.join(plan.output.file_name().unwrap_or_default()),
        Some(path) => path.clone(),
        None => plan.output.clone(),
    };
    if args.dry_run {
        return show(args, kind, &plan, &output);
    }
    let inputs = plan.inputs.iter().map(PathBuf::as_path).chain(args.types.inputs());
    commands::write(&plan.job, &output, &args.force.sparing(inputs))
}

impl Args {
    fn options(&self) -> Result<Options, Failure> {
        Ok(Options {
            outtype: self.outtype.target(),
            quantization: self.types.options()?,
            imatrix: self.types.imatrix(),
            architecture: self.architecture.clone(),
            pre: self.pre.clone(),
            model_name: self.model_name.clone(),
            like: self.like.clone(),
            metadata: self.metadata.clone(),
            base: self.base.clone(),
            provenance: self.provenance,
            overrides: self.legacy.overrides(),
            metadata_dir: self.legacy.metadata_dir.clone(),
            reserve: self.reserve,
        })
    }
}

fn show(args: &Args, kind: Kind, plan: &Plan, output: &Path) -> Result<(), Failure> {
    // As strict as the real thing.
    plan.job.header()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut json = listing::plan_json(&plan.job);
        json["output"] = output.display().to_string().into();
        if kind == Kind::Legacy {
            json["changes"] = plan.changes.iter().map(legacy::change_json).collect();
        }
        writeln!(out, "{json:#}")?;
    } else {
        write!(out, "{}", listing::plan_text(&plan.job, output))?;
        for Change { name, from, to, how } in &plan.changes {
            writeln!(out, "{name:<44} {from:<28} -> {to:<7} {how}")?;
        }
    }
    Ok(())
}
