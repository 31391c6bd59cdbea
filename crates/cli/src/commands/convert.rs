//! `gguf convert`: a checkpoint directory to a GGUF.

use std::io::Write;
use std::path::PathBuf;

use gguf::edit::reserve;
use gguf_convert::hf;
use gguf_convert::source::safetensors::Checkpoint;

use crate::failure::Failure;
use crate::target::{self, Outtype};
use crate::{commands, listing};

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
    /// Directory with config.json, tokenizer and safetensors.
    source: PathBuf,
    /// File to write; without it, a name by the naming convention, in the source directory.
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Type of the output: a mix such as q4_k_m, a float type, or auto for the 16-bit type of the
    /// checkpoint (--help lists all).
    #[arg(long, default_value = "auto", value_name = "TYPE")]
    outtype: Outtype,
    /// Name of the pre-tokenizer, instead of recognising it from tokenizer.json.
    #[arg(long, value_name = "NAME")]
    pre: Option<String>,
    /// Name of the model, instead of the one from model card or directory.
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// JSON file with general metadata that override those found.
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
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
    let checkpoint = Checkpoint::open(&args.source)?;
    let options = hf::Options {
        outtype: args.outtype.target(),
        pre: args.pre.clone(),
        model_name: args.model_name.clone(),
        metadata: args.metadata.clone(),
        like: args.like.clone(),
    };
    let mut conversion = hf::plan(&args.source, &checkpoint, &options)?;
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
