//! `gguf convert`: a checkpoint, a model from before GGUF, or a lone file of weights, to a GGUF.

mod flags;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::edit::reserve;
use gguf::{LocalFile, Source};
use gguf_convert::hf::Conversion;
use gguf_convert::lora::peft;
use gguf_convert::source::Checkpoint;
use gguf_convert::{bare, hf, provenance};
use gguf_remote::Location;

use crate::checkpoint::Opened;
use crate::commands::given::Given;
use crate::commands::{self, legacy, quantize::types};
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::target::{self, Outtype};
use flags::Kind;

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
    pub(super) source: String,
    /// Of a lone file of weights what it is for: names, shapes and types stay as they are. Of a
    /// file from before GGUF the program it is of, instead of recognising it: llama, gpt2,
    /// starcoder, gptj, gptneox, dolly-v2, mpt, replit, bloom, falcon or whisper.
    #[arg(long, value_name = "NAME")]
    pub(super) architecture: Option<String>,
    /// File to write; without it, a name by the naming convention, in the source directory, or
    /// here if the source is not on this machine.
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Type of the output: a mix such as q4_k_m, a float type, or auto for what the checkpoint
    /// has, in 16 bits where GGUF cannot hold it as it is (--help lists all).
    #[arg(long, default_value = "auto", value_name = "TYPE")]
    pub(super) outtype: Outtype,
    #[command(flatten)]
    pub(super) types: types::Args,
    /// Name of the pre-tokenizer, instead of recognising it from tokenizer.json.
    #[arg(long, value_name = "NAME")]
    pub(super) pre: Option<String>,
    /// Name of the model, instead of the one from model card or directory.
    #[arg(long, value_name = "NAME")]
    pub(super) model_name: Option<String>,
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
    pub(super) reserve: u64,
    /// Show the plan and write nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run, the plan as JSON.
    #[arg(long, requires = "dry_run")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) force: Force,
    #[command(flatten)]
    pub(super) legacy: legacy::Flags,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let path = Path::new(&args.source);
    if is_gguf(path)? {
        return Err(Failure::Usage(format!(
            "{} is a GGUF already: `gguf quantize` changes its types, and writes it as the \
             current version with `copy` for a type",
            args.source
        )));
    }
    let kind = kind(args)?;
    flags::check(&args.given, kind, args.outtype.target())?;
    match kind {
        Kind::Legacy => legacy::run(args),
        Kind::Adapter => adapter(args),
        Kind::Lone => {
            let checkpoint = Checkpoint::open_file(path)?;
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let options = bare::Options {
                architecture: args.architecture.clone().unwrap_or_default(),
                name: args.model_name.clone().or(stem).unwrap_or_default(),
                outtype: args.outtype.target(),
                quantization: args.types.options()?,
            };
            let beside = path.parent().unwrap_or(path);
            finish(args, bare::plan(&checkpoint, &options)?, beside, None)
        }
        Kind::Checkpoint => {
            let opened = Opened::open(&args.source)?;
            let options = args.options()?;
            let mut conversion = hf::plan(&opened.dir, &opened.checkpoint, &options)?;
            if args.provenance {
                let metadata = &mut conversion.job.metadata;
                provenance::write(metadata, &opened.dir, &opened.checkpoint, &args.settings())?;
            }
            finish(args, conversion, opened.output_dir(), None)
        }
    }
}

/// What kind of source it is.
fn kind(args: &Args) -> Result<Kind, Failure> {
    let path = Path::new(&args.source);
    match path.is_file() {
        true if gguf_convert::legacy::is_legacy(path)? => Ok(Kind::Legacy),
        true if args.architecture.is_some() => Ok(Kind::Lone),
        true => Err(Failure::Usage(format!(
            "{} is a file; name its directory, or say what it is for with --architecture",
            args.source
        ))),
        false if path.join(peft::CONFIG).is_file() => Ok(Kind::Adapter),
        // A file that is not there: opening it says so.
        false if args.architecture.is_some() && is_missing(&args.source)? => Ok(Kind::Lone),
        false => Ok(Kind::Checkpoint),
    }
}

/// Whether there is nothing of this name on this machine, and it names nothing elsewhere.
fn is_missing(source: &str) -> Result<bool, Failure> {
    Ok(matches!(Location::parse(source)?, Location::Path(path) if !path.exists()))
}

/// Converts a low-rank adapter.
fn adapter(args: &Args) -> Result<(), Failure> {
    let dir = Path::new(&args.source);
    let checkpoint = Checkpoint::open_file(&peft::weights(dir))?;
    let base = peft::base_dir(dir, args.base.as_deref())?;
    // Adapters are often converted beside a configuration alone.
    let weights = Checkpoint::open(&base).ok();
    let options = args.options()?;
    let conversion = peft::plan(dir, &checkpoint, &base, weights.as_ref(), &options)?;
    finish(args, conversion, dir, Some(&base))
}

impl Args {
    fn options(&self) -> Result<hf::Options, Failure> {
        Ok(hf::Options {
            outtype: self.outtype.target(),
            pre: self.pre.clone(),
            model_name: self.model_name.clone(),
            metadata: self.metadata.clone(),
            quantization: self.types.options()?,
            like: self.like.clone(),
        })
    }

    /// The files and directories that are read beside the source.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.metadata.as_deref().into_iter().chain(self.types.inputs())
    }

    /// What was asked for and decides the content of the output.
    fn settings(&self) -> String {
        let outtype = self.outtype.target().map_or("auto".to_owned(), |target| target.to_string());
        let texts =
            [("--pre", &self.pre), ("--model-name", &self.model_name), ("--like", &self.like)];
        let texts = texts.into_iter().filter_map(|(flag, text)| Some((flag, text.as_ref()?)));
        texts.fold(format!("--outtype {outtype}"), |all, (flag, text)| {
            format!("{all} {flag} {text}")
        })
    }
}

/// Writes what is planned, or shows it: into `dir` if no output is named. `base` is read too.
fn finish(
    args: &Args,
    mut conversion: Conversion,
    dir: &Path,
    base: Option<&Path>,
) -> Result<(), Failure> {
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
    let inputs = args.inputs().chain([Path::new(&args.source)]).chain(base);
    commands::write(&conversion.job, &output, &args.force.sparing(inputs))
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
