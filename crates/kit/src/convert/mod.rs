//! Anything that is no GGUF to one: checkpoints, adapters, lone files of weights, old models.

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
pub use options::{Options, Wanted};

use crate::eval::written;
use crate::quantize::{Part, one_part, resume_unsure, within};
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
    /// What to write: the outputs in the order in which they were asked for.
    pub outputs: Vec<Planned>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Files and directories that are read: they are not to be replaced.
    pub inputs: Vec<PathBuf>,
    /// What tells the inputs and the settings from others, if anybody can tell.
    identity: Option<String>,
    split: Option<SplitOptions>,
    part: Option<Part>,
    resume: bool,
    calibration: Option<Calibrator>,
    /// The small files of a far checkpoint, until the outputs are written.
    _files: Option<checkpoint::Opened>,
}

/// An output of a conversion.
pub struct Planned {
    /// What to write.
    pub job: Job,
    /// Where to write it; of several shards the name that theirs are made of.
    pub path: PathBuf,
    /// Of an old file what becomes of each tensor.
    pub changes: Vec<Change>,
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
    pub fn new(
        source: &str,
        kind: Kind,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let (mut told, mut ready) = (None, None);
        if let Some(calibration) = &options.calibration {
            let opened = read(source, kind, options, calibration, progress)?;
            let mut options = options.clone();
            // What is known of columns goes before what planning is told of them.
            options.quantization = options.quantization()?;
            options.imatrix = None;
            opened.prepare(&mut options.quantization);
            (told, ready) = (Some(options), Some(opened));
        }
        let given = options.quantization()?.importance;
        let options = told.as_ref().unwrap_or(options);
        let mut plan = match kind {
            Kind::Checkpoint => of_checkpoint(source, options),
            Kind::Adapter => of_adapter(source, options),
            Kind::Lone => of_lone_file(source, options),
            Kind::Legacy => of_legacy(source, options),
        }?;
        if let Some(ready) = &ready {
            for Planned { job, .. } in &mut plan.outputs {
                ready.restore_importance(job, given.as_ref());
            }
        }
        plan.calibration = ready;
        for Planned { job, .. } in &mut plan.outputs {
            reserve(&mut job.metadata, options.reserve);
            job.order = options.order;
        }
        if options.resume && plan.identity.is_none() {
            return Err(resume_unsure(source));
        }
        plan.inputs.push(source.into());
        plan.inputs.extend(options.metadata.clone());
        // Outputs of one source have most of their notes in common.
        let mut seen = HashSet::new();
        plan.notes.retain(|note| seen.insert(note.clone()));
        Ok(plan)
    }

    /// A plan without outputs yet.
    fn empty(options: &Options, inputs: Vec<PathBuf>, identity: Option<String>) -> Self {
        let Options { split, part, resume, .. } = *options;
        let (outputs, notes) = (Vec::new(), Vec::new());
        let calibration = None;
        Self { outputs, notes, inputs, identity, split, part, resume, calibration, _files: None }
    }

    /// Adds an output; `dir` is where it goes if nobody says.
    fn add(&mut self, conversion: hf::Conversion, wanted: &Wanted, dir: &Path) {
        let hf::Conversion { job, file_name, notes } = conversion;
        let path = wanted.place(dir, &file_name);
        self.notes.extend(notes);
        self.outputs.push(Planned { job, path, changes: Vec::new() });
    }

    /// What goes to which file.
    ///
    /// # Errors
    /// If there were more shards than keys can count; of a part, if there are fewer tensors than parts, or one
    /// cannot be read.
    pub fn files(&self) -> Result<Vec<(Job, PathBuf)>, Error> {
        Ok(self.by_output()?.concat())
    }

    /// The files of each output.
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

    /// Writes all outputs in one pass over the source. `anew` is called if an earlier run left other
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
        let mut outputs = self.by_output()?;
        let mut made = Vec::new();
        if let Some(ready) = &self.calibration {
            let files = outputs.iter_mut().map(Vec::as_mut_slice);
            let (encoded, notes) = ready.encode_all(files, self.resume, anew, progress)?;
            made = encoded;
            self.notes.extend(notes);
        }
        let jobs: Vec<_> =
            outputs.iter().flatten().map(|(job, path)| (job, path.as_path())).collect();
        let interruption = match &self.identity {
            Some(input) => Interruption::Journal { input, resume: self.resume, on_restart: anew },
            None => Interruption::Restart,
        };
        write_all(&jobs, interruption, overwrite, progress)?;
        made.into_iter().try_for_each(EncodedTensors::remove)
    }
}

/// Makes the model that is to read the text, in the types of the source, for the time of that.
fn read(
    source: &str,
    kind: Kind,
    options: &Options,
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
    if matches!(kind, Kind::Adapter | Kind::Lone) || options.vocab_only || options.mmproj {
        return refused("what is no whole model", "leave --calibrate out");
    }
    if options.part.is_some() {
        let help =
            "save what the text shows with `gguf imatrix --moments`, and give --calibration-data";
        return refused("--part: each block is fitted to those before it", help);
    }
    let original = Options {
        outputs: Vec::new(),
        calibration: None,
        imatrix: None,
        quantization: gguf_quantize::QuantizeOptions {
            overrides: options.quantization.overrides.clone(),
            ..gguf_quantize::QuantizeOptions::default()
        },
        provenance: false,
        resume: false,
        reserve: 0,
        order: ByteOrder::default(),
        ..options.clone()
    };
    let plan = Plan::new(source, kind, &original, progress)?;
    // The file stays mapped when its name goes.
    let (model, _scratch) = written(&plan.outputs[0].job, progress)?;
    Calibrator::open(&model, source, calibration)
}

impl Wanted {
    /// Where the output goes.
    fn place(&self, dir: &Path, file_name: &str) -> PathBuf {
        match &self.path {
            Some(path) if path.is_dir() => path.join(file_name),
            Some(path) => path.clone(),
            None => dir.join(file_name),
        }
    }
}

impl Options {
    /// The outputs: at least one.
    fn wanted(&self) -> Vec<Wanted> {
        if self.outputs.is_empty() { vec![Wanted::default()] } else { self.outputs.clone() }
    }

    fn of_hf(&self) -> Result<hf::Options, Error> {
        Ok(hf::Options {
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

fn of_checkpoint(source: &str, options: &Options) -> Result<Plan, Error> {
    let opened = match options.vocab_only {
        true => checkpoint::Opened::open_for_vocabulary(source),
        false => checkpoint::Opened::open(source),
    }?;
    let weights = opened.checkpoint.identity();
    let target = options.target_model_dir.as_deref();
    let small: Vec<&Path> = std::iter::once(&*opened.dir).chain(target).collect();
    let inputs = target.map(Path::to_owned).into_iter().collect();
    let mut plan = Plan::empty(options, inputs, identity(weights, &small, options)?);
    let of_hf = options.of_hf()?;
    for wanted in options.wanted() {
        let of_hf = hf::Options { outtype: wanted.outtype, ..of_hf.clone() };
        let conversion = hf::plan(&opened.dir, &opened.checkpoint, &of_hf);
        let mut conversion = conversion.map_err(|error| opened.called(error))?;
        if options.provenance {
            let (metadata, settings) =
                (&mut conversion.job.metadata, options.settings(wanted.outtype));
            provenance::write(metadata, &opened.dir, &opened.checkpoint, &settings)?;
        }
        plan.add(conversion, &wanted, opened.output_dir());
    }
    Ok(Plan { _files: Some(opened), ..plan })
}

fn of_adapter(source: &str, options: &Options) -> Result<Plan, Error> {
    let dir = Path::new(source);
    let checkpoint = Checkpoint::open_file(&peft::weights(dir))?;
    let base = peft::base_dir(dir, options.base.as_deref())?;
    // Adapters are often converted beside a configuration alone.
    let weights = Checkpoint::open(&base).ok();
    let identity = identity(checkpoint.identity(), &[dir, &base], options)?;
    let mut plan = Plan::empty(options, vec![base.clone()], identity);
    let of_hf = options.of_hf()?;
    for wanted in options.wanted() {
        let of_hf = hf::Options { outtype: wanted.outtype, ..of_hf.clone() };
        let conversion = peft::plan(dir, &checkpoint, &base, weights.as_ref(), &of_hf)?;
        plan.add(conversion, &wanted, dir);
    }
    Ok(plan)
}

fn of_lone_file(source: &str, options: &Options) -> Result<Plan, Error> {
    let path = Path::new(source);
    let checkpoint = Checkpoint::open_file(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut bare = single_file::Options {
        architecture: options.architecture.clone().unwrap_or_default(),
        name: options.model_name.clone().or(stem).unwrap_or_default(),
        outtype: None,
        quantization: options.quantization()?,
    };
    let identity = identity(checkpoint.identity(), &[], options)?;
    let mut plan = Plan::empty(options, Vec::new(), identity);
    for wanted in options.wanted() {
        bare.outtype = wanted.outtype;
        plan.add(single_file::plan(&checkpoint, &bare)?, &wanted, path.parent().unwrap_or(path));
    }
    Ok(plan)
}

fn of_legacy(source: &str, options: &Options) -> Result<Plan, Error> {
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
    for wanted in options.wanted() {
        legacy_options.outtype = wanted.outtype;
        let gguf_legacy::Conversion { job, file_name, notes, changes } =
            legacy.plan(&legacy_options)?;
        let path = wanted.place(path.parent().unwrap_or(path), &file_name);
        plan.notes.extend(notes);
        plan.outputs.push(Planned { job, path, changes });
    }
    Ok(plan)
}

/// What tells a conversion from others: which weights these are, all small files beside them, and
/// the settings. Headers have not all of it: how rows are arranged follows from the class alone.
fn identity(
    weights: Option<&str>,
    dirs: &[&Path],
    options: &Options,
) -> Result<Option<String>, Error> {
    let Some(weights) = weights else { return Ok(None) };
    let mut text = format!("{weights}{}\n", options.settings(None));
    for dir in dirs {
        for (name, digest) in checkpoint::digests_of_small_files(dir)? {
            text += &format!("{name} {digest}\n");
        }
    }
    Ok(Some(text))
}

/// Whether a file begins as a GGUF does.
fn is_gguf(path: &Path) -> Result<bool, Error> {
    Ok(path.is_file() && LocalFile::open(path)?.mapped().starts_with(&gguf::MAGIC))
}
