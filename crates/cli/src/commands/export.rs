//! `gguf export`: converts a GGUF to safetensors, or adds it to the store of Ollama.

mod ollama;

use std::path::{Path, PathBuf};

use gguf::TensorType;
use gguf_convert::export::{self, Directory, safetensors};
use gguf_kit::{Opened, open};
use gguf_pipeline::Tensor;
use gguf_quantize::recipe::Target;

use crate::failure::Failure;
use crate::force::Force;
use crate::outtype::Outtype;
use crate::progress::Progress;
use crate::{commands, listing, terminal};

/// Export to a Hugging Face checkpoint, safetensors or Ollama.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf export llama-q8.gguf --to hf Llama-3.2-1B\n  \
    gguf export model.gguf --to safetensors model.safetensors --dtype f16\n  \
    gguf export model-q4.gguf --to safetensors blocks.safetensors --raw\n  \
    gguf export model-q4.gguf --to ollama my-model:q4")]
pub struct Args {
    /// Model.
    source: String,
    /// Output format: hf writes a directory with config and tokenizer, safetensors a single file, ollama adds a model to
    /// the store of Ollama (OLLAMA_MODELS, or ~/.ollama/models).
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "hf")]
    to: Format,
    /// Output file, or a new or empty directory; the name of the model for Ollama [default: its own name and type].
    output: Option<PathBuf>,
    /// Type of matrices: f32, f16, bf16, or auto, which keeps float types and dequantizes others to bf16.
    #[arg(long, default_value = "auto", value_name = "TYPE")]
    dtype: Outtype,
    /// Copy quantized data as raw bytes, under their GGUF names.
    #[arg(long, conflicts_with = "dtype", help_heading = "Advanced")]
    raw: bool,
    /// Keep GGUF tensor names and layouts in a safetensors file.
    #[arg(long, help_heading = "Advanced")]
    keep_names: bool,
    /// Maximum tensor bytes per file of a directory, N(K|M|G) [default: 5G].
    #[arg(long, value_name = "SIZE", value_parser = listing::parse_size)]
    max_shard_size: Option<u64>,
    /// Print the written file as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

/// Default tensor bytes per file, as in `transformers`.
const SHARD_SIZE: u64 = 5_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Hf,
    Safetensors,
    Ollama,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let dtype = match args.dtype.target() {
        None => None,
        Some(Target::Type(ty)) if !ty.is_quantized() => Some(ty),
        Some(Target::Preset(mix)) if !mix.default_type().is_quantized() => Some(mix.default_type()),
        Some(other) => {
            return Err(Failure::Usage(format!(
                "{other} is not a float type; expected f32, f16 or bf16"
            )));
        }
    };
    if args.to == Format::Ollama {
        if args.raw || args.keep_names || args.max_shard_size.is_some() || dtype.is_some() {
            let what = "--to ollama copies the file: quantize it first";
            return Err(Failure::Usage(what.into()));
        }
        let name = args.output.as_deref().map(Path::to_string_lossy);
        let opened = open(&args.source)?;
        let replace = args.force.is_given();
        return ollama::export(&args.source, &opened, name.as_deref(), replace, args.json);
    }
    let Some(output) = args.output.as_deref() else {
        return Err(Failure::Usage("OUTPUT is missing: expected MODEL OUTPUT".into()));
    };
    if args.to == Format::Safetensors && args.max_shard_size.is_some() {
        return Err(Failure::Usage("--max-shard-size requires --to hf".into()));
    }
    // A directory or several files cannot be written to a stream.
    if output.as_os_str() == "-" {
        args.force.protecting::<&Path>([]).check(output)?;
    }
    let options = export::ExportOptions { dtype };
    let opened = open(&args.source)?;
    let model = opened.model();
    if args.raw || args.keep_names {
        if args.to == Format::Hf {
            return Err(Failure::Usage("--raw and --keep-names require --to safetensors".into()));
        }
        return write(args, output, &opened, &export::gguf_tensors(model, options));
    }
    let plan = export::plan(model, options)?;
    terminal::notes(&plan.notes);
    if args.to == Format::Safetensors {
        return write(args, output, &opened, &plan.tensors);
    }
    let directory = Directory::create(output)?;
    let progress = Progress::new();
    directory.write(&plan, args.max_shard_size.unwrap_or(SHARD_SIZE), &progress)?;
    let time = progress.finish();
    let total = directory_len(output)?;
    if args.json {
        return commands::print_written("export/2", [(output, total)], time);
    }
    let time = time.as_secs_f64();
    eprintln!("wrote {}: {} in {time:.1} s", output.display(), listing::bytes(total));
    Ok(())
}

/// Returns the size of all files of the directory that was written.
fn directory_len(dir: &Path) -> Result<u64, gguf::Error> {
    let failed = |fault| gguf::Error::read(dir, fault);
    let entries = std::fs::read_dir(dir).map_err(failed)?;
    entries.map(|entry| Ok(entry.and_then(|entry| entry.metadata()).map_err(failed)?.len())).sum()
}

/// Writes a single safetensors file.
fn write(
    args: &Args,
    path: &Path,
    opened: &Opened,
    tensors: &[(Tensor, TensorType)],
) -> Result<(), Failure> {
    let progress = Progress::new();
    let overwrite = args.force.protecting(opened.files());
    safetensors::write(path, tensors, args.raw, &overwrite, &progress)?;
    let time = progress.finish();
    if args.json {
        let len = path.metadata().map_err(|fault| gguf::Error::read(path, fault))?.len();
        return commands::print_written("export/2", [(path, len)], time);
    }
    commands::report_file(path, Some(time));
    Ok(())
}
