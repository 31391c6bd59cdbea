//! A GGUF to smaller ones: several outputs of one pass, parts for several machines, resumed work.

mod importance;
mod outputs;

use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::shard_keys::PART_FINGERPRINT;
use gguf::{Gguf, Limits};
pub use gguf_calibrate::{Calibration, CalibrationText};
use gguf_calibrate::{Calibrator, EncodedTensors};
use gguf_pipeline::{Interruption, Job, write_all};
use gguf_quantize::recipe::{Target, write_type_file};
use gguf_quantize::{budget, estimate};
use gguf_remote::Location;
use gguf_store::edit::reserve;
use gguf_store::{AtomicFile, Overwrite, Progress};
pub use importance::Choice;
pub use outputs::{Goal, Named, Part, Split};
pub(crate) use outputs::{one_part, within};

use crate::{Error, Opened, open};

/// What is asked for.
#[derive(Clone, Default)]
pub struct Options {
    /// What to make, and the name of each file.
    pub outputs: Vec<Named>,
    /// Which tensor gets which type.
    pub quantization: gguf_quantize::QuantizeOptions,
    /// How the tensors are divided among files.
    pub split: Split,
    /// Bytes of room for later edits of the header.
    pub reserve: u64,
    /// A file for the types of all matrices.
    pub save_recipe: Option<PathBuf>,
    /// Go on where an earlier run was interrupted, and keep what is done if this one is.
    pub resume: bool,
    /// Round weights by what a text shows, instead of each for itself.
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

/// Where an output goes that nobody has named: beside the model that `source` names, and beside its directory
/// if it is one; of a far model, to the current directory.
///
/// # Errors
/// If `source` names no place.
pub fn default_path(opened: &Opened, source: &str, target: Target) -> Result<PathBuf, Error> {
    let name = crate::name::of_output(opened.model(), target);
    Ok(match Location::parse(source)? {
        Location::Path(path) => path.with_file_name(name),
        _ => name.into(),
    })
}

/// The digest by which a part of a piece of work, near or far, knows the other parts; `None` of a file that is
/// no part.
///
/// # Errors
/// If the file cannot be read, or breaks the format.
pub fn fingerprint(word: &str) -> Result<Option<String>, Error> {
    let file = gguf_remote::open(word)?.source;
    let start = gguf_store::fetch_header(&*file, Limits::default())?;
    let read = Gguf::read_header(&start, file.byte_len(), Limits::default());
    let gguf = read.map_err(|error| error.in_file(word.as_ref()))?;
    Ok(gguf.metadata().str(PART_FINGERPRINT).map(str::to_owned))
}

/// Nobody can tell whether a far source is the one of an earlier run.
pub(crate) fn resume_unsure(source: &str) -> Error {
    Error::request(
        "resume-unsure",
        format!(
            "--resume: the server of {source} gives neither ETag nor date by which anybody could tell \
             whether it is the same file the next time"
        ),
        "leave --resume out, or download the file",
    )
}

/// Outputs that are ready to be written.
pub struct Plan {
    files: Vec<(Job, PathBuf)>,
    /// Of each output its files.
    outputs: Vec<Range<usize>>,
    calibration: Option<Calibrator>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The types of all matrices, as a file for `recipe`; no recipe touches vectors.
    recipe: String,
    save_recipe: Option<PathBuf>,
    resume: bool,
    /// What the inputs are, if anybody can tell.
    input: Option<String>,
}

impl Plan {
    /// Plans every output of the model that `source` names.
    ///
    /// # Errors
    /// If the options do not go together, or with the model; if a tensor cannot have its type; if a
    /// file cannot be read; if `progress` ended a measurement.
    pub fn new(
        opened: &Opened,
        source: &str,
        options: &Options,
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
                "--save-recipe goes with one output",
                "",
            ));
        }
        require_calibrated(options)?;
        let calibration = options.calibration.as_ref();
        let calibration =
            calibration.map(|choice| Calibrator::open(model, source, choice)).transpose()?;
        let mut quantization = options.quantization.clone();
        if let Some(ready) = &calibration {
            ready.prepare(&mut quantization);
            if options.outputs.iter().any(|named| matches!(named.goal, Goal::Budget(_))) {
                ready.measure_sensitivity(model, &mut quantization, progress)?;
            }
        }
        // Which blocks are left out shows neither in the input nor always in the header.
        let pruned = &options.quantization.prune_layers;
        let mut plan = Self {
            files: Vec::new(),
            outputs: Vec::new(),
            calibration,
            notes: Vec::new(),
            recipe: String::new(),
            save_recipe: options.save_recipe.clone(),
            resume: options.resume,
            input: input.map(|input| format!("{input}{:?}", pruned.iter().collect::<Vec<_>>())),
        };
        for named in &options.outputs {
            let mut planned = match named.goal {
                Goal::Target(target) => gguf_quantize::plan(model, target, &quantization)?,
                Goal::Budget(budget) => budget::plan(model, budget, &quantization, progress)?,
            };
            if let Some(ready) = &plan.calibration {
                ready
                    .restore_importance(&mut planned.job, options.quantization.importance.as_ref());
            }
            if options.reserve > 0 {
                reserve(&mut planned.job.metadata, options.reserve);
            }
            plan.notes.append(&mut planned.notes);
            let job = planned.job;
            let matrices = job.items.iter().filter(|item| item.tensor.shape.len() > 1);
            plan.recipe = write_type_file(matrices.map(|i| (i.tensor.name.as_str(), i.target)));
            let first = plan.files.len();
            plan.files.extend(options.split.files(job, &named.path, model)?);
            plan.outputs.push(first..plan.files.len());
        }
        Ok(plan)
    }

    /// What goes to which file.
    pub fn files(&self) -> impl Iterator<Item = (&Job, &Path)> {
        self.files.iter().map(|(job, path)| (job, path.as_path()))
    }

    /// Bytes of tensor data of all outputs.
    ///
    /// # Errors
    /// If a header breaks a rule of the format.
    pub fn data_len(&self) -> Result<u64, Error> {
        self.files.iter().map(|(job, _)| Ok(job.header()?.data_len())).sum()
    }

    /// About how long encoding takes on the threads of the current rayon pool.
    pub fn seconds(&self) -> f64 {
        estimate::seconds(self.files.iter().map(|(job, _)| job))
    }

    /// Writes the recipe only.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_recipe(&self, overwrite: &Overwrite) -> Result<(), Error> {
        self.recipe_file(overwrite)?.map_or(Ok(()), AtomicFile::commit)
    }

    /// Writes all outputs in one pass over the model. `anew` is called if an earlier run left other
    /// work, which is thrown away.
    ///
    /// # Errors
    /// As [`write_all`].
    pub fn write(
        &mut self,
        overwrite: &Overwrite,
        anew: &(dyn Fn() + Sync),
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut made = Vec::new();
        if let Some(ready) = &self.calibration {
            let mut rest = &mut self.files[..];
            let files = self.outputs.iter().map(|range| range.len());
            let files = files.map(|n| rest.split_off_mut(..n).unwrap_or_default());
            let (encoded, notes) = ready.encode_all(files, self.resume, anew, progress)?;
            made = encoded;
            self.notes.extend(notes);
        }
        let recipe = self.recipe_file(overwrite)?;
        let interruption = match &self.input {
            Some(input) => Interruption::Journal { input, resume: self.resume, on_restart: anew },
            None => Interruption::Restart,
        };
        let jobs: Vec<_> = self.files().collect();
        write_all(&jobs, interruption, overwrite, progress)?;
        made.into_iter().try_for_each(EncodedTensors::remove)?;
        recipe.map_or(Ok(()), AtomicFile::commit)
    }

    /// The file for the recipe, which waits for its name.
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

/// Refuses what does not go with calibrating.
fn require_calibrated(options: &Options) -> Result<(), Error> {
    let Some(calibration) = &options.calibration else { return Ok(()) };
    let refused = |flag: &str, why: &str, help: &str| {
        let what = format!("{flag} does not go with --calibrate: {why}");
        Err(Error::request("option-contradicts", what, help.to_owned()))
    };
    let is_of_text = matches!(calibration, Calibration::Text(_));
    if matches!(options.split, Split::Part(_)) && is_of_text {
        return refused(
            "--part",
            "each block is fitted to those before it",
            "save what the text shows with `gguf imatrix --moments`, and give --calibration-data",
        );
    }
    if !options.quantization.prune_layers.is_empty() {
        return refused(
            "--prune-layers",
            "the model that is read has all blocks",
            "leave --prune-layers out",
        );
    }
    Ok(())
}

impl Options {
    /// Refuses what must not be written, as far as names are known before the plan, which may take
    /// long.
    ///
    /// # Errors
    /// As [`Overwrite::check`].
    pub fn check_outputs(&self, overwrite: &Overwrite) -> Result<(), Error> {
        let whole = matches!(self.split, Split::None);
        let outputs = self.outputs.iter().map(|named| &named.path).filter(|_| whole);
        outputs.chain(&self.save_recipe).try_for_each(|path| overwrite.check(path))
    }
}
