//! Weights rounded by what a text shows of a model: [`gguf_calibrate`] for the items of jobs.

mod hearing;
mod judging;
mod made;
mod reading;
mod saved;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{TensorType, Value};
use gguf_calibrate::{Calibrated, Each, Encoders};
use gguf_pipeline::{Content, Item, Job, Stored};
use gguf_quantize::importance::Importance;
use gguf_runtime::Executor;
use gguf_store::{Model, Progress};
use gguf_tokenizer::Tokenizer;
pub(crate) use made::{Keep, MadeFile};
use reading::Reader;
pub use reading::Reading;
use saved::Saved;
pub use saved::save;

use crate::{Error, digest, read_text};

/// By what weights are rounded.
#[derive(Clone, Debug)]
pub enum Calibration {
    /// By a text, which both the original and the quantized model read: each matrix makes up for what those before
    /// it spoiled.
    Text(Reading),
    /// By a file that [`save`] has written: each matrix for itself.
    Data(PathBuf),
    /// By nothing but the weights, and an importance matrix if there is one: each block for itself, with a longer
    /// search for its scales.
    Weights,
}

/// The keys that say what a file was calibrated by begin like this.
pub(crate) const PREFIX: &str = "gguf_kit.calibration.";

impl Calibration {
    /// The file that is read.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Text(reading) => Some(&reading.text),
            Self::Data(file) => Some(file),
            Self::Weights => None,
        }
    }

    /// Refuses a text that is to judge as well; `name` is what that is called.
    ///
    /// # Errors
    /// `text-same` if both have the same content, and if the file cannot be read.
    pub fn require_other(&self, judging: &str, name: &str) -> Result<(), Error> {
        let of_text = match self {
            Self::Text(reading) => Some(digest::sha256(read_text(&reading.text)?.as_bytes())),
            Self::Data(file) => Saved::open(file)?.text(),
            Self::Weights => None,
        };
        if of_text == Some(digest::sha256(judging.as_bytes())) {
            let what = format!("{name} is the text that weights are fitted to");
            return Err(Error::request("text-same", what, "judge by another text"));
        }
        Ok(())
    }

    /// What it is, so that another one is noticed.
    pub(crate) fn describe(&self) -> Result<String, Error> {
        let method = gguf_calibrate::METHOD;
        match self {
            Self::Text(Reading { text, window, tokens }) => {
                let digest = digest::sha256(read_text(text)?.as_bytes());
                Ok(format!("{method}, {digest}, {tokens} tokens in windows of {window}"))
            }
            Self::Data(file) => Ok(format!("{method}, {}", Saved::open(file)?.describe())),
            Self::Weights => Ok(format!("{method}, weights alone")),
        }
    }
}

/// Types whose blocks, each fitted for itself, make worse models than the usual search, which counts large weights more:
/// measured in `docs/calibration.md`.
const WORSE_ALONE: [TensorType; 6] = [
    TensorType::IQ1_S,
    TensorType::IQ1_M,
    TensorType::IQ2_XXS,
    TensorType::IQ2_XS,
    TensorType::IQ2_S,
    TensorType::IQ3_XXS,
];

/// How many tokens for each column of a matrix are few.
const FEW: usize = 4;

/// What weights are rounded by, opened.
pub(crate) struct Ready {
    by: By,
    /// Of each tensor that can be calibrated the numbers of a row, times matrices.
    matrices: HashMap<String, usize>,
    keys: Vec<(String, Value)>,
    described: String,
}

enum By {
    Text(Box<Reader>),
    Data(Saved),
    Weights,
}

impl Ready {
    /// For the model that `source` names.
    pub fn open(model: &Model, source: &str, calibration: &Calibration) -> Result<Self, Error> {
        let by = match calibration {
            Calibration::Text(reading) => By::Text(Box::new(Reader::open(model, source, reading)?)),
            _ => return Self::without_model(calibration),
        };
        Self::new(by, calibration)
    }

    /// Without a model that reads.
    pub fn without_model(calibration: &Calibration) -> Result<Self, Error> {
        let by = match calibration {
            Calibration::Data(file) => By::Data(Saved::open(file)?),
            _ => By::Weights,
        };
        Self::new(by, calibration)
    }

    /// For a model that is open.
    pub fn of(
        executor: &Arc<Executor>,
        tokenizer: &Tokenizer,
        calibration: &Calibration,
    ) -> Result<Self, Error> {
        let by = match calibration {
            Calibration::Text(reading) => {
                By::Text(Box::new(Reader::new(executor.clone(), tokenizer, reading)?))
            }
            _ => return Self::without_model(calibration),
        };
        Self::new(by, calibration)
    }

    fn new(by: By, calibration: &Calibration) -> Result<Self, Error> {
        let (matrices, mut keys) = match &by {
            By::Text(reader) => (reader.matrices(), reader.keys()),
            By::Data(saved) => (saved.matrices(), saved.keys()),
            By::Weights => {
                let method = Value::from(format!("{}-weights", gguf_calibrate::METHOD));
                (HashMap::new(), vec![(format!("{PREFIX}method"), method)])
            }
        };
        keys.push((format!("{PREFIX}version"), Value::from(env!("CARGO_PKG_VERSION"))));
        Ok(Self { by, matrices, keys, described: calibration.describe()? })
    }

    /// What planning is to know: that there are weights for columns, whatever they are.
    pub fn tell(&self, options: &mut gguf_quantize::Options) {
        if !self.matrices.is_empty() {
            let nothing = || Importance { is_partial: true, ..Importance::default() };
            let given = options.importance.get_or_insert_with(nothing);
            for (name, len) in &self.matrices {
                given.weights.entry(name.clone()).or_insert_with(|| vec![1.0; *len].into());
            }
        }
        options.overrides.extend(self.keys.iter().cloned());
    }

    /// What types do to predictions of the text, if it is read: what a size target then goes by, unless another
    /// measurement is given.
    pub fn measure(
        &self,
        model: &Model,
        options: &mut gguf_quantize::Options,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        if let (By::Text(reader), None) = (&self.by, &options.sensitivity) {
            options.sensitivity = Some(reader.sensitivity(model, options, progress)?);
        }
        Ok(())
    }

    /// Takes from items what [`Ready::tell`] gave them, where they are not to be calibrated.
    pub fn restore(&self, job: &mut Job, importance: Option<&Importance>) {
        let given = |name: &str| importance.and_then(|given| given.weights.get(name)).cloned();
        for item in job.items.iter_mut().filter(|item| !self.has(item)) {
            if self.matrices.contains_key(&item.tensor.name) {
                item.importance = given(&item.tensor.name);
            }
        }
    }

    /// Whether an item is rounded by what is known of it.
    pub fn has(&self, item: &Item) -> bool {
        item.tensor.shape.len() >= 2
            && item.target != item.tensor.stored_type
            && gguf_quant::has_form(item.target)
            && match self.by {
                By::Weights => !WORSE_ALONE.contains(&item.target),
                _ => self.matrices.contains_key(&item.tensor.name),
            }
    }

    /// Encodes the items of several outputs, each the files that it consists of, with what `resume` and `anew` say of
    /// earlier runs. Returns as [`Ready::encode`] for each.
    pub fn encode_all<'f>(
        &self,
        outputs: impl Iterator<Item = &'f mut [(Job, PathBuf)]>,
        resume: bool,
        anew: &(dyn Fn() + Sync),
        progress: &dyn Progress,
    ) -> Result<(Vec<MadeFile>, Vec<String>), Error> {
        let (mut made, mut told) = (Vec::new(), Vec::new());
        for files in outputs {
            let output = files.first().map_or_else(PathBuf::new, |(_, path)| path.clone());
            let mut jobs: Vec<_> = files.iter_mut().map(|(job, _)| job).collect();
            let keep = if resume { Keep::At { output: &output, anew } } else { Keep::Nothing };
            let (file, notes) = self.encode(&mut jobs, keep, progress)?;
            made.push(file);
            told.extend(notes);
        }
        Ok((made, told))
    }

    /// Encodes the items of the files of one output, which then are what stands in a file of its own. Returns that,
    /// and what the user should know.
    pub fn encode(
        &self,
        jobs: &mut [&mut Job],
        keep: Keep<'_>,
        progress: &dyn Progress,
    ) -> Result<(MadeFile, Vec<String>), Error> {
        let mut work = vec![self.described.clone()];
        if matches!(keep, Keep::At { .. }) {
            for job in &*jobs {
                work.push(job.fingerprint()?);
            }
        }
        let file = std::cell::RefCell::new(MadeFile::open(keep, &work.join("\n"))?);
        let items: Vec<_> = jobs.iter().flat_map(|job| &job.items).collect();
        let changed: Vec<&Item> =
            items.into_iter().filter(|item| item.target != item.tensor.stored_type).collect();
        let calibrated = changed.iter().filter(|item| self.has(item));
        let len = |item: &&&Item| item.target.byte_len(&item.tensor.shape);
        progress.begin("calibrating", calibrated.clone().filter_map(|item| len(&item)).sum());
        let mut notes = Notes::default();
        let made = |name: &str| {
            let made = file.borrow().get(name)?;
            progress.step(made.as_ref().map_or(0, Vec::len) as u64)?;
            Ok(made)
        };
        let mut each = |made: Calibrated| {
            file.borrow_mut().add(&made.name, &made.bytes)?;
            notes.add(&made);
            progress.step(made.bytes.len() as u64)
        };
        let directory = file.borrow().directory().to_owned();
        let quantized = self.calibrate(&changed, &directory, &made, &mut each, progress)?;
        let file = file.into_inner();
        let source = file.source()?;
        for item in jobs.iter_mut().flat_map(|job| &mut job.items) {
            if let Some(offset) = file.place(&item.tensor.name) {
                let at = Stored { source: source.clone(), offset };
                item.tensor.stored_type = item.target;
                item.tensor.content = Content::Stored(at);
            }
        }
        let mut told = notes.told();
        if let (By::Text(reader), Some(quantized)) = (&self.by, quantized) {
            told.extend(reader.judge(&quantized, progress)?);
        }
        Ok((file, told))
    }

    /// Encodes items: `each` gets those that are calibrated. Returns the model with all of them if it was read.
    pub fn calibrate(
        &self,
        items: &[&Item],
        directory: &Path,
        made: &gguf_calibrate::Made<'_>,
        each: &mut Each<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Executor>>, Error> {
        match &self.by {
            By::Text(reader) => reader.calibrate(items, directory, made, each, progress).map(Some),
            By::Data(saved) => {
                let items: Vec<&Item> =
                    items.iter().copied().filter(|item| self.has(item)).collect();
                saved.calibrate(&items, made, each, progress).map(|()| None)
            }
            By::Weights => {
                let mut encoders = Encoders::default();
                for item in items.iter().filter(|item| self.has(item)) {
                    if made(&item.tensor.name)?.is_none() {
                        each(encoders.encode_alone(item, progress)?)?;
                    }
                }
                Ok(None)
            }
        }
    }
}

/// What is said about tensors in the end.
#[derive(Default)]
struct Notes {
    few: usize,
    dead: usize,
    unreached: Vec<String>,
}

/// Tensors that are named in one note.
const NAMED: usize = 5;

impl Notes {
    fn add(&mut self, made: &Calibrated) {
        self.dead += usize::from(made.dead > 0);
        self.few += usize::from(made.tokens < (FEW * made.columns) as u64);
        if made.unreached > 0 {
            let of = match made.matrices {
                1 => String::new(),
                all => format!(" ({} of {all})", made.unreached),
            };
            self.unreached.push(format!("{}{of}", made.name));
        }
    }

    fn told(self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.few > 0 {
            notes.push(format!(
                "the text has fewer than {FEW} tokens per column for {} tensors, whose moments were damped more: a \
                 longer one makes them better",
                self.few
            ));
        }
        if self.dead > 0 {
            let dead = self.dead;
            notes.push(format!("{dead} tensors have columns that nothing of the text reaches"));
        }
        if !self.unreached.is_empty() {
            let more = self.unreached.len().saturating_sub(NAMED);
            let names = self.unreached[..self.unreached.len() - more].join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!(
                "nothing of the text reaches matrices of {names}{more}: their weights count alike"
            ));
        }
        notes
    }
}
