//! Quantization: several outputs in one pass, parts for distributed work, resumable.

mod outputs;

use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::shard_keys::PART_FINGERPRINT;
use gguf::{Gguf, Limits};
pub use gguf_calibrate::{Calibration, CalibrationText, TextSource};
use gguf_calibrate::{Calibrator, EncodedTensors};
use gguf_pipeline::{Interruption, Job, write_all};
pub use gguf_quantize::ImatrixChoice;
use gguf_quantize::recipe::{Target, write_type_file};
use gguf_quantize::{budget, estimate};
use gguf_remote::Location;
use gguf_store::edit::reserve;
use gguf_store::{AtomicFile, Overwrite, Progress};
pub use outputs::{Goal, Part, QuantizeOutput, Split};
pub(crate) use outputs::{one_part, within};

use crate::{Error, Opened, open};

/// Options of a quantization.
#[derive(Clone, Default)]
pub struct QuantizeRequest {
    /// Outputs.
    pub outputs: Vec<QuantizeOutput>,
    /// Tensor types.
    pub quantization: gguf_quantize::QuantizeOptions,
    /// Sharding of the outputs.
    pub split: Split,
    /// Bytes reserved for later edits of the header.
    pub reserve: u64,
    /// Path of a file for the types of all matrices.
    pub save_recipe: Option<PathBuf>,
    /// Resumes an interrupted run, and keeps finished work if this one is interrupted.
    pub resume: bool,
    /// Calibration of the weights.
    pub calibration: Option<Calibration>,
}

/// Writes the Hessians of the model that `source` names, for a text, or for an audio file if it is a Whisper model.
///
/// # Errors
/// As [`gguf_calibrate::save_hessians`]; if the model cannot be opened.
pub fn save_hessians(
    source: &str,
    text: &CalibrationText,
    output: &Path,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<(), Error> {
    overwrite.check(output)?;
    let opened = open(source)?;
    gguf_calibrate::save_hessians(opened.model(), source, text, output, overwrite, progress)
}

/// Returns the default path of an output: beside the model file or directory that `source` names, or the current
/// directory for a remote model.
///
/// # Errors
/// If `source` is not a valid location.
pub fn default_path(opened: &Opened, source: &str, target: Target) -> Result<PathBuf, Error> {
    let name = crate::name::for_output(opened.model(), target);
    Ok(match Location::parse(source)? {
        // Not in the store of Ollama.
        Location::Path(path) if !source.starts_with("ollama:") => path.with_file_name(name),
        _ => name.into(),
    })
}

/// Returns the digest that all parts of a distributed run share; `None` for a file that is not a part.
///
/// # Errors
/// If the file cannot be read or breaks the format.
pub fn fingerprint(source: &str) -> Result<Option<String>, Error> {
    let file = gguf_remote::open(source)?.source;
    let start = gguf_store::fetch_header(&*file, Limits::default())?;
    let read = Gguf::read_header(&start, file.byte_len(), Limits::default());
    let gguf = read.map_err(|error| error.in_file(source.as_ref()))?;
    Ok(gguf.metadata().str(PART_FINGERPRINT).map(str::to_owned))
}

/// Returns the error for a remote source without an identity.
pub(crate) fn resume_unsure(source: &str) -> Error {
    Error::request(
        "resume-unsure",
        format!(
            "--resume: the server of {source} sends neither an ETag nor a date that identifies the file"
        ),
        "omit --resume, or download the file",
    )
}

/// A planned quantization.
pub struct Plan {
    files: Vec<(Job, PathBuf)>,
    /// Range of the files of each output.
    outputs: Vec<Range<usize>>,
    calibrator: Option<Calibrator>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Types of all matrices in the format of type files. Vectors are not quantized.
    recipe: String,
    save_recipe: Option<PathBuf>,
    resume: bool,
    /// Identity of the inputs, if it can be determined.
    input: Option<String>,
}

impl Plan {
    /// Plans the outputs of the model that `source` names.
    ///
    /// # Errors
    /// If options contradict each other or the model, a tensor cannot have its type, a file cannot be read, or `progress`
    /// stopped a measurement.
    pub fn new(
        opened: &Opened,
        source: &str,
        options: &QuantizeRequest,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let model = opened.model();
        let input = model.identity();
        if options.resume && input.is_none() {
            return Err(resume_unsure(source));
        }
        if options.save_recipe.is_some() && options.outputs.len() > 1 {
            return Err(Error::request(
                "option-contradicts",
                "--save-recipe requires a single output",
                "",
            ));
        }
        check_calibration(options)?;
        let calibration = options.calibration.as_ref();
        let open_calibrator = |choice| Calibrator::open(model, source, choice, progress);
        let parts = match options.split {
            Split::Part(part) => part.count(),
            _ => 1,
        };
        let calibrator = calibration.map(open_calibrator).transpose()?;
        let calibrator = calibrator.map(|calibrator| calibrator.in_parts(parts));
        let mut quantization = options.quantization.clone();
        let mut notes = Vec::new();
        if let Some(calibrator) = &calibrator {
            notes = calibrator.notes(progress)?;
            calibrator.prepare(&mut quantization);
            if options.outputs.iter().any(|output| matches!(output.goal, Goal::Budget(_))) {
                calibrator.measure_sensitivity(model, &mut quantization, progress)?;
            }
        }
        // Pruned layers are visible neither in the input nor always in the header.
        let pruned = &options.quantization.prune_layers;
        let mut plan = Self {
            files: Vec::new(),
            outputs: Vec::new(),
            calibrator,
            notes,
            recipe: String::new(),
            save_recipe: options.save_recipe.clone(),
            resume: options.resume,
            input: input.map(|input| format!("{input}{:?}", pruned.iter().collect::<Vec<_>>())),
        };
        for output in &options.outputs {
            let mut planned = match output.goal {
                Goal::Target(target) => gguf_quantize::plan(model, target, &quantization)?,
                Goal::Budget(budget) => budget::plan(model, budget, &quantization, progress)?,
            };
            if let Some(calibrator) = &plan.calibrator {
                calibrator
                    .restore_importance(&mut planned.job, options.quantization.importance.as_ref());
            }
            // The padding of an edited input is not part of the model.
            reserve(&mut planned.job.metadata, options.reserve);
            if !pruned.is_empty() {
                gguf_graph::stored::remove(&mut planned.job.metadata);
            }
            plan.notes.append(&mut planned.notes);
            let job = planned.job;
            let matrices = job.items.iter().filter(|item| item.tensor.shape.len() > 1);
            plan.recipe = write_type_file(matrices.map(|i| (i.tensor.name.as_str(), i.target)));
            let first = plan.files.len();
            plan.files.extend(options.split.files(job, &output.path, model)?);
            plan.outputs.push(first..plan.files.len());
        }
        Ok(plan)
    }

    /// Returns the content and path of each file.
    pub fn files(&self) -> impl Iterator<Item = (&Job, &Path)> {
        self.files.iter().map(|(job, path)| (job, path.as_path()))
    }

    /// Returns the bytes of tensor data of all outputs.
    ///
    /// # Errors
    /// If a header breaks a rule of the format.
    pub fn data_len(&self) -> Result<u64, Error> {
        self.files.iter().map(|(job, _)| Ok(job.header()?.data_len())).sum()
    }

    /// Returns the estimated encoding time in seconds, on the threads of the current rayon pool.
    pub fn seconds(&self) -> f64 {
        estimate::seconds(self.files.iter().map(|(job, _)| job))
    }

    /// Writes only the type file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_recipe(&self, overwrite: &Overwrite) -> Result<(), Error> {
        self.recipe_file(overwrite)?.map_or(Ok(()), AtomicFile::commit)
    }

    /// Writes all outputs in one pass over the model. Calls `on_discard` if saved progress of other work is discarded.
    ///
    /// # Errors
    /// As [`write_all`].
    pub fn write(
        &mut self,
        overwrite: &Overwrite,
        on_discard: &(dyn Fn() + Sync),
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut encoded = Vec::new();
        if let Some(calibrator) = &self.calibrator {
            let mut rest = &mut self.files[..];
            let files = self.outputs.iter().map(|range| range.len());
            let files = files.map(|n| rest.split_off_mut(..n).unwrap_or_default());
            let (files, notes) = calibrator.encode_all(files, self.resume, on_discard, progress)?;
            encoded = files;
            self.notes.extend(notes);
        }
        let recipe = self.recipe_file(overwrite)?;
        let interruption = match &self.input {
            Some(input) => {
                Interruption::Journal { input, resume: self.resume, on_restart: on_discard }
            }
            None => Interruption::Restart,
        };
        let jobs: Vec<_> = self.files().collect();
        write_all(&jobs, interruption, overwrite, progress)?;
        encoded.into_iter().try_for_each(EncodedTensors::remove)?;
        recipe.map_or(Ok(()), AtomicFile::commit)
    }

    /// Creates the type file, which is committed after the outputs.
    fn recipe_file(&self, overwrite: &Overwrite) -> Result<Option<AtomicFile>, Error> {
        let Some(path) = &self.save_recipe else { return Ok(None) };
        let output = AtomicFile::create(path, overwrite)?;
        if self.files.iter().any(|(_, model)| output.is_for(model)) {
            let what = format!("{} is named twice", path.display());
            return Err(Error::request("output-twice", what, "name each output once"));
        }
        output.write_at(self.recipe.as_bytes(), 0)?;
        Ok(Some(output))
    }
}

/// Refuses options that contradict calibration.
fn check_calibration(options: &QuantizeRequest) -> Result<(), Error> {
    if options.calibration.is_some() && !options.quantization.prune_layers.is_empty() {
        let what =
            "--prune-layers does not go with --calibrate: the calibrated model has all layers";
        return Err(Error::request("option-contradicts", what, "omit --prune-layers"));
    }
    Ok(())
}

impl QuantizeRequest {
    /// Refuses outputs that must not be replaced, as far as their names are known before planning.
    ///
    /// # Errors
    /// As [`Overwrite::check`].
    pub fn check_outputs(&self, overwrite: &Overwrite) -> Result<(), Error> {
        let whole = matches!(self.split, Split::None);
        let outputs = self.outputs.iter().map(|output| &output.path).filter(|_| whole);
        outputs.chain(&self.save_recipe).try_for_each(|path| overwrite.check(path))
    }
}
