//! Conversion to GGUF: checkpoints, LoRA adapters, single weight files, legacy GGML files.

mod options;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gguf::ByteOrder;
use gguf_calibrate::{Calibration, Calibrator, EncodedTensors};
use gguf_checkpoint::Checkpoint;
use gguf_convert::lora::peft;
use gguf_convert::{hf, provenance, single_file};
use gguf_legacy::{Change, LegacyModel, LegacyOptions, is_legacy, part_paths};
use gguf_pipeline::{Interruption, Job, write_all};
use gguf_remote::Location;
use gguf_store::edit::reserve;
use gguf_store::{LocalFile, Overwrite, Progress, Source, SplitOptions};
pub use options::{ConvertOptions, OutputOptions, RenderSettings, Setting};

use crate::quantize::{Part, one_part, resume_unsure, within};
use crate::{Error, checkpoint, tokens};

/// Kind of the source of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A checkpoint directory or repository.
    Checkpoint,
    /// A directory with a LoRA adapter.
    Adapter,
    /// A single weight file.
    SingleFile,
    /// A legacy GGML file.
    Legacy,
}

/// A planned conversion.
pub struct Plan {
    /// Outputs in the order of the options.
    pub outputs: Vec<Planned>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Input files and directories, which no output may replace.
    pub inputs: Vec<PathBuf>,
    /// Identity of inputs and settings, if it can be determined.
    identity: Option<String>,
    split: Option<SplitOptions>,
    part: Option<Part>,
    resume: bool,
    calibration: Option<Calibrator>,
    /// Downloaded small files of a remote checkpoint, kept until the outputs are written.
    _files: Option<checkpoint::Opened>,
}

/// A planned output.
pub struct Planned {
    /// Content of the output.
    pub job: Job,
    /// Path of the file, or the base of the names of its shards.
    pub path: PathBuf,
    /// Changes of the tensors of a legacy file.
    pub changes: Vec<Change>,
}

/// Returns the kind of a source; `architecture` is that of a single weight file.
///
/// # Errors
/// `source-is-gguf` for a GGUF; `source-unclear` for a single weight file without an architecture.
pub fn kind(source: &str, architecture: Option<&str>) -> Result<Kind, Error> {
    let path = Path::new(source);
    if is_gguf(path)? {
        return Err(Error::request(
            "source-is-gguf",
            format!("{source} is a GGUF already"),
            "`gguf quantize` changes its types; with the type `copy` it writes the current version",
        ));
    }
    match path.is_file() {
        true if is_legacy(path)? => Ok(Kind::Legacy),
        true if architecture.is_some() => Ok(Kind::SingleFile),
        true => Err(Error::request(
            "source-unclear",
            format!("{source} is a single file"),
            "name its directory, or set its architecture with --architecture",
        )),
        // Opening the missing file reports the error.
        false if architecture.is_some() && is_missing(source)? => Ok(Kind::SingleFile),
        false if path.join(peft::CONFIG).is_file() => Ok(Kind::Adapter),
        false => Ok(Kind::Checkpoint),
    }
}

/// Whether a source is a local path that does not exist.
fn is_missing(source: &str) -> Result<bool, Error> {
    Ok(matches!(Location::parse(source)?, Location::Path(path) if !path.exists()))
}

impl Plan {
    /// Plans the conversion of a source.
    ///
    /// # Errors
    /// If the source cannot be read, is invalid, or contradicts the options.
    pub fn new(
        source: &str,
        kind: Kind,
        options: &ConvertOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let (mut prepared, mut calibrator) = (None, None);
        if let Some(calibration) = &options.calibration {
            let opened = open_calibrator(source, kind, options, calibration, progress)?;
            let mut options = options.clone();
            // The importance matrix takes precedence over the placeholders of `prepare`.
            options.quantization = options.quantization()?;
            options.imatrix = None;
            opened.prepare(&mut options.quantization);
            (prepared, calibrator) = (Some(options), Some(opened));
        }
        let importance = options.quantization()?.importance;
        let options = prepared.as_ref().unwrap_or(options);
        let mut plan = match kind {
            Kind::Checkpoint => plan_checkpoint(source, options),
            Kind::Adapter => plan_adapter(source, options),
            Kind::SingleFile => plan_single_file(source, options),
            Kind::Legacy => plan_legacy(source, options),
        }?;
        if let Some(calibrator) = &calibrator {
            plan.notes.extend(calibrator.notes(progress)?);
            for Planned { job, .. } in &mut plan.outputs {
                calibrator.restore_importance(job, importance.as_ref());
            }
        }
        plan.calibration = calibrator;
        for Planned { job, .. } in &mut plan.outputs {
            reserve(&mut job.metadata, options.reserve);
            job.order = options.order;
        }
        if options.resume && plan.identity.is_none() {
            return Err(resume_unsure(source));
        }
        plan.inputs.push(source.into());
        plan.inputs.extend(options.metadata.clone());
        // Outputs of one source share most notes.
        let mut seen = HashSet::new();
        plan.notes.retain(|note| seen.insert(note.clone()));
        Ok(plan)
    }

    /// Returns a plan without outputs.
    fn empty(options: &ConvertOptions, inputs: Vec<PathBuf>, identity: Option<String>) -> Self {
        let ConvertOptions { split, part, resume, .. } = *options;
        let (outputs, notes) = (Vec::new(), Vec::new());
        let calibration = None;
        Self { outputs, notes, inputs, identity, split, part, resume, calibration, _files: None }
    }

    /// Adds an output; `dir` is its default directory.
    fn add(&mut self, conversion: hf::Conversion, output: &OutputOptions) {
        let hf::Conversion { job, file_name, notes } = conversion;
        let path = output.path_in(&file_name);
        self.notes.extend(notes);
        self.outputs.push(Planned { job, path, changes: Vec::new() });
    }

    /// Returns the content and path of each file.
    ///
    /// # Errors
    /// If the number of shards is too large; for a part, if there are fewer tensors than parts or a tensor cannot be read.
    pub fn files(&self) -> Result<Vec<(Job, PathBuf)>, Error> {
        Ok(self.by_output()?.concat())
    }

    /// Returns the files of each output.
    fn by_output(&self) -> Result<Vec<Vec<(Job, PathBuf)>>, Error> {
        let files = self.outputs.iter().map(|Planned { job, path, .. }| {
            let (job, path) = (job.clone(), path.clone());
            match (self.part, self.split) {
                (Some(part), _) => Ok(vec![one_part(job, &path, part)?]),
                (None, Some(split)) => within(job, &path, split),
                (None, None) => Ok(vec![(job, path)]),
            }
        });
        files.collect()
    }

    /// Writes all outputs in one pass over the source. Calls `on_discard` if saved progress of other work is discarded.
    ///
    /// # Errors
    /// As [`write_all`].
    pub fn write(
        &mut self,
        overwrite: &Overwrite,
        on_discard: &(dyn Fn() + Sync),
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut outputs = self.by_output()?;
        let mut encoded = Vec::new();
        if let Some(calibrator) = &self.calibration {
            let files = outputs.iter_mut().map(Vec::as_mut_slice);
            let (files, notes) = calibrator.encode_all(files, self.resume, on_discard, progress)?;
            encoded = files;
            self.notes.extend(notes);
        }
        let jobs: Vec<_> =
            outputs.iter().flatten().map(|(job, path)| (job, path.as_path())).collect();
        let interruption = match &self.identity {
            Some(input) => {
                Interruption::Journal { input, resume: self.resume, on_restart: on_discard }
            }
            None => Interruption::Restart,
        };
        write_all(&jobs, interruption, overwrite, progress)?;
        encoded.into_iter().try_for_each(EncodedTensors::remove)
    }
}

/// Opens the calibration. For a text, converts the model to the types of the source in a temporary file first.
fn open_calibrator(
    source: &str,
    kind: Kind,
    options: &ConvertOptions,
    calibration: &Calibration,
    progress: &dyn Progress,
) -> Result<Calibrator, Error> {
    if !matches!(calibration, Calibration::Text(_)) {
        return Calibrator::without_model(calibration);
    }
    let refused = |what: &str, help: &str| {
        let what = format!("--calibrate does not go with {what}");
        Err(Error::request("option-contradicts", what, help.to_owned()))
    };
    if matches!(kind, Kind::Adapter | Kind::SingleFile) || options.vocab_only || options.mmproj {
        return refused("an incomplete model", "omit --calibrate");
    }
    if options.part.is_some() {
        let help =
            "convert to F16 first, then run `gguf quantize --calibrate --part` on each machine";
        return refused("--part: every part would convert the whole model", help);
    }
    let original = ConvertOptions {
        outputs: Vec::new(),
        calibration: None,
        imatrix: None,
        quantization: gguf_quantize::QuantizeOptions {
            overrides: options.quantization.overrides.clone(),
            ..gguf_quantize::QuantizeOptions::default()
        },
        provenance: None,
        resume: false,
        reserve: 0,
        order: ByteOrder::default(),
        ..options.clone()
    };
    let plan = Plan::new(source, kind, &original, progress)?;
    // The file stays mapped after its directory is removed.
    let (model, _scratch) = plan.outputs[0].job.write_temporary(progress)?;
    Calibrator::open(&model, source, calibration, progress)
}

impl OutputOptions {
    /// Returns the path of the output, by default in the working directory.
    fn path_in(&self, file_name: &str) -> PathBuf {
        match &self.path {
            Some(path) if path.is_dir() => path.join(file_name),
            Some(path) => path.clone(),
            None => file_name.into(),
        }
    }
}

impl ConvertOptions {
    /// Returns the outputs: at least one.
    fn outputs(&self) -> Vec<OutputOptions> {
        if self.outputs.is_empty() { vec![OutputOptions::default()] } else { self.outputs.clone() }
    }

    fn hf_options(&self) -> Result<hf::HfOptions, Error> {
        Ok(hf::HfOptions {
            outtype: None,
            pre: self.pre.clone(),
            model_name: self.model_name.clone(),
            metadata: self.metadata.clone(),
            quantization: self.quantization()?,
            like: self.like.clone(),
            vocab_only: self.vocab_only,
            mmproj: self.mmproj,
            target_model_dir: self.target_model_dir.clone(),
        })
    }
}

fn plan_checkpoint(source: &str, options: &ConvertOptions) -> Result<Plan, Error> {
    let opened = match options.vocab_only {
        true => checkpoint::Opened::open_for_vocabulary(source),
        false => checkpoint::Opened::open(source),
    }?;
    let weights = opened.checkpoint.identity();
    let target = options.target_model_dir.as_deref();
    let small: Vec<&Path> = std::iter::once(&*opened.dir).chain(target).collect();
    let inputs = target.map(Path::to_owned).into_iter().collect();
    let mut plan = Plan::empty(options, inputs, identity(weights, &small, options)?);
    let hf_options = options.hf_options()?;
    for output in options.outputs() {
        let hf_options = hf::HfOptions { outtype: output.outtype, ..hf_options.clone() };
        let conversion = hf::plan(&opened.dir, &opened.checkpoint, &hf_options);
        let mut conversion = conversion.map_err(|error| opened.named(error))?;
        if let Some(render) = options.provenance {
            let settings = render(&options.settings(output.outtype));
            let metadata = &mut conversion.job.metadata;
            provenance::write(metadata, &opened.dir, &opened.checkpoint, &settings)?;
        }
        plan.add(conversion, &output);
    }
    if let Some(Planned { job, .. }) = plan.outputs.first() {
        plan.notes.extend(tokens::conversion_notes(target.unwrap_or(&opened.dir), &job.metadata)?);
    }
    Ok(Plan { _files: Some(opened), ..plan })
}

fn plan_adapter(source: &str, options: &ConvertOptions) -> Result<Plan, Error> {
    let dir = Path::new(source);
    let checkpoint = Checkpoint::open_file(&peft::weights(dir))?;
    let base = peft::base_dir(dir, options.base.as_deref())?;
    // The base model often has a configuration but no weights.
    let weights = Checkpoint::open(&base).ok();
    let identity = identity(checkpoint.identity(), &[dir, &base], options)?;
    let mut plan = Plan::empty(options, vec![base.clone()], identity);
    let hf_options = options.hf_options()?;
    for output in options.outputs() {
        let hf_options = hf::HfOptions { outtype: output.outtype, ..hf_options.clone() };
        let conversion = peft::plan(dir, &checkpoint, &base, weights.as_ref(), &hf_options)?;
        plan.add(conversion, &output);
    }
    Ok(plan)
}

fn plan_single_file(source: &str, options: &ConvertOptions) -> Result<Plan, Error> {
    let path = Path::new(source);
    let checkpoint = Checkpoint::open_file(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut bare = single_file::SingleFileOptions {
        architecture: options.architecture.clone().unwrap_or_default(),
        name: options.model_name.clone().or(stem).unwrap_or_default(),
        outtype: None,
        quantization: options.quantization()?,
    };
    let identity = identity(checkpoint.identity(), &[], options)?;
    let mut plan = Plan::empty(options, Vec::new(), identity);
    for output in options.outputs() {
        bare.outtype = output.outtype;
        plan.add(single_file::plan(&checkpoint, &bare)?, &output);
    }
    Ok(plan)
}

fn plan_legacy(source: &str, options: &ConvertOptions) -> Result<Plan, Error> {
    let path = Path::new(source);
    let mut legacy_options = LegacyOptions {
        outtype: None,
        architecture: options.architecture.clone(),
        overrides: options.overrides.clone(),
        metadata_dir: options.metadata_dir.clone(),
        pre: options.pre.clone(),
        model_name: options.model_name.clone(),
        quantization: options.quantization()?,
    };
    let legacy = LegacyModel::open(path, &legacy_options)?;
    let files: Vec<PathBuf> = part_paths(path).filter(|part| part.is_file()).collect();
    let weights: Result<Vec<_>, Error> =
        files.iter().map(|part| Ok(LocalFile::open(part)?.identity())).collect();
    let weights: Option<String> = weights?.into_iter().collect();
    let small: Vec<&Path> = options.metadata_dir.as_deref().into_iter().collect();
    let identity = identity(weights.as_deref(), &small, options)?;
    let inputs = options.metadata_dir.iter().cloned().chain(part_paths(path)).collect();
    let mut plan = Plan::empty(options, inputs, identity);
    for output in options.outputs() {
        legacy_options.outtype = output.outtype;
        let gguf_legacy::Conversion { job, file_name, notes, changes } =
            legacy.plan(&legacy_options)?;
        let path = output.path_in(&file_name);
        plan.notes.extend(notes);
        plan.outputs.push(Planned { job, path, changes });
    }
    Ok(plan)
}

/// Returns the identity of a conversion: the weights, all small files beside them, and the settings. The output header is
/// not sufficient: the permutation of rows depends on the model class.
fn identity(
    weights: Option<&str>,
    dirs: &[&Path],
    options: &ConvertOptions,
) -> Result<Option<String>, Error> {
    let Some(weights) = weights else { return Ok(None) };
    let mut text = format!("{weights}{:?}\n", options.settings(None));
    for dir in dirs {
        for (name, digest) in checkpoint::digests_of_small_files(dir)? {
            text += &format!("{name} {digest}\n");
        }
    }
    Ok(Some(text))
}

/// Whether a file has the magic of a GGUF.
fn is_gguf(path: &Path) -> Result<bool, Error> {
    Ok(path.is_file() && LocalFile::open(path)?.mapped().starts_with(&gguf::MAGIC))
}
