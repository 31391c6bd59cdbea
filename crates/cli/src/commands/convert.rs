//! `gguf convert`: a checkpoint directory, or a model from before GGUF, to a GGUF.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::edit::reserve;
use gguf::{LocalFile, Source};
use gguf_convert::hf;
use gguf_convert::source::safetensors::Checkpoint;

use crate::commands::legacy;
use crate::failure::Failure;
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
    /// Directory with config.json, tokenizer and safetensors; or a file from before GGUF.
    pub(super) source: PathBuf,
    /// File to write; without it, a name by the naming convention, in the source directory.
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Type of the output: a mix such as q4_k_m, a float type, or auto for the 16-bit type of the
    /// checkpoint (--help lists all).
    #[arg(long, default_value = "auto", value_name = "TYPE")]
    pub(super) outtype: Outtype,
    /// Name of the pre-tokenizer, instead of recognising it from tokenizer.json.
    #[arg(long, value_name = "NAME")]
    pub(super) pre: Option<String>,
    /// Name of the model, instead of the one from model card or directory.
    #[arg(long, value_name = "NAME")]
    pub(super) model_name: Option<String>,
    /// JSON file with general metadata that override those found.
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Room for later edits of the header, so that they take an instant: N(K|M|G).
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve)]
    pub(super) reserve: u64,
    /// Show the plan and write nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run, the plan as JSON.
    #[arg(long, requires = "dry_run")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) legacy: legacy::Flags,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if gguf_convert::legacy::is_legacy(&args.source)? {
        return legacy::run(args);
    }
    if is_gguf(&args.source)? {
        let path = args.source.display();
        return Err(Failure::Usage(format!(
            "{path} is a GGUF already: `gguf quantize` changes its types, and writes it as the \
             current version with `copy` for a type"
        )));
    }
    let checkpoint = Checkpoint::open(&args.source)?;
    let options = hf::Options {
        outtype: args.outtype.target(),
        pre: args.pre.clone(),
        model_name: args.model_name.clone(),
        metadata: args.metadata.clone(),
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

/// Whether a file begins as a GGUF does.
fn is_gguf(path: &Path) -> Result<bool, Failure> {
    if !path.is_file() {
        return Ok(false);
    }
    let file = LocalFile::open(path)?;
    let mut start = [0; 4];
    if file.byte_len() < 4 {
        return Ok(false);
    }
    file.read_at(&mut start, 0)?;
    Ok(start == gguf::MAGIC)
}
