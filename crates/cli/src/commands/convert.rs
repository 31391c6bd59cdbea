//! `gguf convert`: a checkpoint, or a lone file of weights, to a GGUF.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::edit::reserve;
use gguf_convert::hf::Conversion;
use gguf_convert::source::Checkpoint;
use gguf_convert::{bare, hf};

use crate::checkpoint::Opened;
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
    /// Directory with config.json, tokenizer and weights (safetensors or PyTorch); or, with
    /// --architecture, one file of weights; or hf:org/repo[@revision], which is not downloaded.
    #[arg(value_name = "SOURCE")]
    source: String,
    /// What the lone file of weights is for; names, shapes and types stay as they are.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pre", "metadata"])]
    architecture: Option<String>,
    /// File to write; without it, a name by the naming convention, in the source directory, or
    /// here if the source is not on this machine.
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Type of the output: a mix such as q4_k_m, a float type, or auto for what the checkpoint
    /// has, in 16 bits where GGUF cannot hold it as it is (--help lists all).
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
    match &args.architecture {
        Some(architecture) => {
            let path = Path::new(&args.source);
            let checkpoint = Checkpoint::open_file(path)?;
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let options = bare::Options {
                architecture: architecture.clone(),
                name: args.model_name.clone().or(stem).unwrap_or_default(),
                outtype: args.outtype.target(),
            };
            let beside = path.parent().unwrap_or(path);
            finish(args, bare::plan(&checkpoint, &options)?, beside)
        }
        None if Path::new(&args.source).is_file() => Err(Failure::Usage(format!(
            "{} is a file; name its directory, or say what it is for with --architecture",
            args.source
        ))),
        None => {
            let opened = Opened::open(&args.source)?;
            let options = hf::Options {
                outtype: args.outtype.target(),
                pre: args.pre.clone(),
                model_name: args.model_name.clone(),
                metadata: args.metadata.clone(),
            };
            let conversion = hf::plan(&opened.dir, &opened.checkpoint, &options)?;
            finish(args, conversion, opened.output_dir())
        }
    }
}

/// Writes what is planned, or shows it.
fn finish(args: &Args, mut conversion: Conversion, dir: &Path) -> Result<(), Failure> {
    reserve(&mut conversion.job.metadata, args.reserve);
    commands::print_notes(&conversion.notes);
    let output = match &args.output {
        Some(path) if path.is_dir() => path.join(&conversion.file_name),
        Some(path) => path.clone(),
        None => dir.join(&conversion.file_name),
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
