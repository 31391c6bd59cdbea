//! Anything that is no GGUF to one: checkpoints, adapters, lone files of weights, old models.

mod options;

use std::path::{Path, PathBuf};

use gguf_checkpoint::Checkpoint;
use gguf_convert::lora::peft;
use gguf_convert::{bare, hf, provenance};
use gguf_legacy::{Change, Legacy, is_legacy, parts};
use gguf_pipeline::Job;
use gguf_remote::Location;
use gguf_store::LocalFile;
use gguf_store::edit::reserve;
pub use options::Options;

use crate::{Error, checkpoint};

/// What a conversion begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory with a model, or a repository.
    Checkpoint,
    /// A directory with a low-rank adapter.
    Adapter,
    /// One file of weights.
    Lone,
    /// A file from before GGUF.
    Legacy,
}

/// A conversion that is ready to run.
pub struct Plan {
    /// What to write.
    pub job: Job,
    /// Where to write it if nobody says: a name by the naming convention, beside a source that is
    /// on this machine.
    pub output: PathBuf,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Of an old file what becomes of each tensor.
    pub changes: Vec<Change>,
    /// Files and directories that are read: they are not to be replaced.
    pub inputs: Vec<PathBuf>,
    /// The small files of a far checkpoint, until the job is written.
    _files: Option<checkpoint::Opened>,
}

/// What kind of source a word names; `architecture` is what a lone file is for.
///
/// # Errors
/// If it is a GGUF, or a file of which nobody says what it is for.
pub fn kind(source: &str, architecture: Option<&str>) -> Result<Kind, Error> {
    let path = Path::new(source);
    if is_gguf(path)? {
        return Err(Error::request(
            "source-is-gguf",
            format!("{source} is a GGUF already"),
            "`gguf quantize` changes its types, and writes it as the current version with `copy` \
             for a type",
        ));
    }
    match path.is_file() {
        true if is_legacy(path)? => Ok(Kind::Legacy),
        true if architecture.is_some() => Ok(Kind::Lone),
        true => Err(Error::request(
            "source-unclear",
            format!("{source} is a file"),
            "name its directory, or say what it is for with --architecture",
        )),
        // A file that is not there: opening it says so.
        false if architecture.is_some() && is_missing(source)? => Ok(Kind::Lone),
        false if path.join(peft::CONFIG).is_file() => Ok(Kind::Adapter),
        false => Ok(Kind::Checkpoint),
    }
}

/// Whether there is nothing of this name on this machine, and it names nothing elsewhere.
fn is_missing(source: &str) -> Result<bool, Error> {
    Ok(matches!(Location::parse(source)?, Location::Path(path) if !path.exists()))
}

impl Plan {
    /// Plans the conversion of a source of this kind.
    ///
    /// # Errors
    /// If it cannot be read, is at fault, or does not go with the options.
    pub fn new(source: &str, kind: Kind, options: &Options) -> Result<Self, Error> {
        let mut plan = match kind {
            Kind::Checkpoint => of_checkpoint(source, options),
            Kind::Adapter => of_adapter(source, options),
            Kind::Lone => of_lone_file(source, options),
            Kind::Legacy => of_legacy(source, options),
        }?;
        reserve(&mut plan.job.metadata, options.reserve);
        plan.inputs.push(source.into());
        plan.inputs.extend(options.metadata.clone());
        Ok(plan)
    }

    fn of(conversion: hf::Conversion, dir: &Path) -> Self {
        let hf::Conversion { job, file_name, notes } = conversion;
        let (changes, inputs) = (Vec::new(), Vec::new());
        Self { job, output: dir.join(file_name), notes, changes, inputs, _files: None }
    }
}

impl Options {
    fn of_hf(&self) -> Result<hf::Options, Error> {
        Ok(hf::Options {
            outtype: self.outtype,
            pre: self.pre.clone(),
            model_name: self.model_name.clone(),
            metadata: self.metadata.clone(),
            quantization: self.quantization()?,
            like: self.like.clone(),
        })
    }
}

fn of_checkpoint(source: &str, options: &Options) -> Result<Plan, Error> {
    let opened = checkpoint::Opened::open(source)?;
    let conversion = hf::plan(&opened.dir, &opened.checkpoint, &options.of_hf()?);
    let mut conversion = conversion.map_err(|error| opened.called(error))?;
    if options.provenance {
        let metadata = &mut conversion.job.metadata;
        provenance::write(metadata, &opened.dir, &opened.checkpoint, &options.settings())?;
    }
    let plan = Plan::of(conversion, opened.output_dir());
    Ok(Plan { _files: Some(opened), ..plan })
}

fn of_adapter(source: &str, options: &Options) -> Result<Plan, Error> {
    let dir = Path::new(source);
    let checkpoint = Checkpoint::open_file(&peft::weights(dir))?;
    let base = peft::base_dir(dir, options.base.as_deref())?;
    // Adapters are often converted beside a configuration alone.
    let weights = Checkpoint::open(&base).ok();
    let conversion = peft::plan(dir, &checkpoint, &base, weights.as_ref(), &options.of_hf()?)?;
    Ok(Plan { inputs: vec![base], ..Plan::of(conversion, dir) })
}

fn of_lone_file(source: &str, options: &Options) -> Result<Plan, Error> {
    let path = Path::new(source);
    let checkpoint = Checkpoint::open_file(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let options = bare::Options {
        architecture: options.architecture.clone().unwrap_or_default(),
        name: options.model_name.clone().or(stem).unwrap_or_default(),
        outtype: options.outtype,
        quantization: options.quantization()?,
    };
    Ok(Plan::of(bare::plan(&checkpoint, &options)?, path.parent().unwrap_or(path)))
}

fn of_legacy(source: &str, options: &Options) -> Result<Plan, Error> {
    let path = Path::new(source);
    let options = gguf_legacy::Options {
        outtype: options.outtype,
        architecture: options.architecture.clone(),
        given: options.overrides.clone(),
        metadata_dir: options.metadata_dir.clone(),
        pre: options.pre.clone(),
        model_name: options.model_name.clone(),
        quantization: options.quantization()?,
    };
    let gguf_legacy::Conversion { job, file_name, notes, changes } =
        Legacy::open(path, &options)?.plan(&options)?;
    let inputs = options.metadata_dir.into_iter().chain(parts(path)).collect();
    Ok(Plan { job, output: path.with_file_name(file_name), notes, changes, inputs, _files: None })
}

/// Whether a file begins as a GGUF does.
fn is_gguf(path: &Path) -> Result<bool, Error> {
    Ok(path.is_file() && LocalFile::open(path)?.mapped().starts_with(&gguf::MAGIC))
}
