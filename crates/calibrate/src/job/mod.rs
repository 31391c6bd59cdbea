//! Calibration of quantization jobs: by a text, by saved Hessians, or by the weights alone.

mod audio;
mod encoded_file;
mod held_out;
mod hessian_file;
mod text;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Bytes, Error, Metadata, TensorType, Value};
use gguf_pipeline::{Content, Item, Job, Stored};
use gguf_quantize::importance::Importance;
use gguf_runtime::Executor;
use gguf_store::{Model, Progress, digest};
use gguf_tokenizer::Tokenizer;

pub use self::encoded_file::{EncodedTensors, Persistence};
use self::hessian_file::HessianFile;
pub use self::hessian_file::save_hessians;
use self::text::TextCalibration;
pub use self::text::{CalibrationText, TextSource};
use crate::{CalibratedTensor, Encoders, FindEncoded, OnTensor};

/// Source of the calibration statistics.
#[derive(Clone, Debug)]
pub enum Calibration {
    /// A text that the original and the quantized model read: each matrix compensates the errors of earlier ones.
    Text(CalibrationText),
    /// A file of [`save_hessians`]: each matrix is encoded independently.
    Data(PathBuf),
    /// The weights, and an importance matrix if there is one: each block is encoded independently, with a longer
    /// search for its scales.
    Weights,
}

/// Prefix of the metadata keys that describe a calibration.
pub const KEY_PREFIX: &str = "gguf_kit.calibration.";

impl Calibration {
    /// Returns the input files.
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Self::Text(text) => text.sources.iter().filter_map(TextSource::path).collect(),
            Self::Data(file) => vec![file],
            Self::Weights => Vec::new(),
        }
    }

    /// Refuses an evaluation text that is also the calibration text; `name` names it in messages.
    ///
    /// # Errors
    /// `text-same` if both texts are equal; if the file cannot be read.
    pub fn require_other_text(&self, text: &str, name: &str) -> Result<(), Error> {
        let calibration_texts = match self {
            Self::Text(text) => {
                text.sources.iter().map(TextSource::digest).collect::<Result<_, _>>()?
            }
            Self::Data(file) => Vec::from_iter(HessianFile::open(file)?.text_digest()),
            Self::Weights => Vec::new(),
        };
        if calibration_texts.contains(&digest::sha256(text.as_bytes())) {
            let what = format!("{name} is the calibration text");
            return Err(Error::request("text-same", what, "evaluate on another text"));
        }
        Ok(())
    }

    /// Returns a description that differs between different calibrations.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn describe(&self) -> Result<String, Error> {
        let method = crate::METHOD;
        match self {
            Self::Text(text @ CalibrationText { chunk, tokens, .. }) => {
                let digest = text.digest()?;
                Ok(format!("{method}, {digest}, {tokens} tokens in windows of {chunk}"))
            }
            Self::Data(file) => Ok(format!("{method}, {}", HessianFile::open(file)?.describe())),
            Self::Weights => Ok(format!("{method}, weights alone")),
        }
    }
}

/// Types for which calibration by the weights alone gives worse models than the usual search, which gives large weights
/// more influence: measured in `docs/calibration.md`.
const WORSE_BY_WEIGHTS: [TensorType; 6] = [
    TensorType::IQ1_S,
    TensorType::IQ1_M,
    TensorType::IQ2_XXS,
    TensorType::IQ2_XS,
    TensorType::IQ2_S,
    TensorType::IQ3_XXS,
];

/// Recommended minimum number of calibration tokens per column of a matrix.
const MIN_TOKENS_PER_COLUMN: usize = 4;

/// Encodes the tensors of jobs by a [`Calibration`].
pub struct Calibrator {
    statistics: Statistics,
    /// Row length times number of matrices of each tensor that can be calibrated.
    matrices: HashMap<String, usize>,
    keys: Vec<(String, Value)>,
    description: String,
    /// Number of parts that are calibrated independently.
    parts: u16,
}

enum Statistics {
    Text(Box<TextCalibration>),
    Data(HessianFile),
    Weights,
}

impl Calibrator {
    /// Opens a calibration of `model`, which the user named `source`.
    ///
    /// # Errors
    /// If a file cannot be read; `calibration-impossible` if the model cannot read a text; as [`gguf_eval::perplexity`].
    pub fn open(
        model: &Model,
        source: &str,
        calibration: &Calibration,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let statistics = match calibration {
            Calibration::Text(text) => {
                Statistics::Text(Box::new(TextCalibration::open(model, source, text, progress)?))
            }
            _ => return Self::without_model(calibration),
        };
        Self::new(statistics, calibration)
    }

    /// Opens a calibration that does not run a model.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn without_model(calibration: &Calibration) -> Result<Self, Error> {
        let statistics = match calibration {
            Calibration::Data(file) => Statistics::Data(HessianFile::open(file)?),
            _ => Statistics::Weights,
        };
        Self::new(statistics, calibration)
    }

    /// Opens a calibration of the model that `executor` runs, which has this metadata.
    ///
    /// # Errors
    /// As [`Calibrator::open`].
    pub fn with_executor(
        executor: &Arc<Executor>,
        metadata: &Metadata,
        tokenizer: &Tokenizer,
        calibration: &Calibration,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let statistics = match calibration {
            Calibration::Text(text) => {
                let executor = executor.clone();
                let text = TextCalibration::new(executor, metadata, tokenizer, text, progress)?;
                Statistics::Text(Box::new(text))
            }
            _ => return Self::without_model(calibration),
        };
        Self::new(statistics, calibration)
    }

    fn new(statistics: Statistics, calibration: &Calibration) -> Result<Self, Error> {
        let (matrices, mut keys) = match &statistics {
            Statistics::Text(text) => (text.matrices(), text.keys()),
            Statistics::Data(data) => (data.matrices(), data.keys()),
            Statistics::Weights => {
                let method = Value::from(format!("{}-weights", crate::METHOD));
                (HashMap::new(), vec![(format!("{KEY_PREFIX}method"), method)])
            }
        };
        keys.push((format!("{KEY_PREFIX}version"), Value::from(env!("CARGO_PKG_VERSION"))));
        Ok(Self { statistics, matrices, keys, description: calibration.describe()?, parts: 1 })
    }

    /// Calibrates the tensors in `count` parts, perhaps on several machines: by a text, the matrices of each part compensate
    /// only errors of matrices in the same part. The other calibrations encode each matrix independently anyway.
    pub fn in_parts(mut self, count: u16) -> Self {
        if count > 1 && matches!(self.statistics, Statistics::Text(_)) {
            self.parts = count;
            self.keys.push((format!("{KEY_PREFIX}parts"), Value::U32(count.into())));
        }
        self
    }

    /// Returns notes for the user about a text that hardly resembles what the model processes, and about parts.
    ///
    /// # Errors
    /// As [`gguf_eval::perplexity`].
    pub fn notes(&self, progress: &dyn Progress) -> Result<Vec<String>, Error> {
        let Statistics::Text(text) = &self.statistics else { return Ok(Vec::new()) };
        let mut notes = text.notes(progress)?;
        if self.parts > 1 {
            notes.push(
                "each part compensates only its own errors: a single run is closer to the original. \
                 Compare the merged model with `gguf divergence`"
                    .to_owned(),
            );
        }
        Ok(notes)
    }

    /// Adds to the options of a plan: placeholder importance for all calibrated tensors, so that types that need
    /// importance are accepted, and the metadata keys.
    pub fn prepare(&self, options: &mut gguf_quantize::QuantizeOptions) {
        if !self.matrices.is_empty() {
            let empty = || Importance { is_partial: true, ..Importance::default() };
            let importance = options.importance.get_or_insert_with(empty);
            for (name, len) in &self.matrices {
                let weights = importance.weights.entry(name.clone());
                weights.or_insert_with(|| vec![1.0; *len].into());
            }
        }
        options.overrides.extend(self.keys.iter().cloned());
    }

    /// Measures the sensitivity of the tensors on the calibration text, for a plan with a size target. Does nothing
    /// without a text, or if `options` has a sensitivity.
    ///
    /// # Errors
    /// As [`gguf_eval::measure_sensitivity`].
    pub fn measure_sensitivity(
        &self,
        model: &Model,
        options: &mut gguf_quantize::QuantizeOptions,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        if let (Statistics::Text(text), None) = (&self.statistics, &options.sensitivity) {
            options.sensitivity = Some(text.sensitivity(model, options, progress)?);
        }
        Ok(())
    }

    /// Replaces the placeholder importance of [`Calibrator::prepare`] in items that are not calibrated.
    pub fn restore_importance(&self, job: &mut Job, importance: Option<&Importance>) {
        let original = |name: &str| importance.and_then(|all| all.weights.get(name)).cloned();
        for item in job.items.iter_mut().filter(|item| !self.calibrates(item)) {
            if self.matrices.contains_key(&item.tensor.name) {
                item.importance = original(&item.tensor.name);
            }
        }
    }

    /// Whether an item is calibrated.
    pub fn calibrates(&self, item: &Item) -> bool {
        item.tensor.shape.len() >= 2
            && item.target != item.tensor.stored_type
            && gguf_quant::has_quant_grid(item.target)
            && match self.statistics {
                Statistics::Weights => !WORSE_BY_WEIGHTS.contains(&item.target),
                _ => self.matrices.contains_key(&item.tensor.name),
            }
    }

    /// Encodes the items of several outputs, each given by its files, as [`Calibrator::encode`] does. With `resume`,
    /// encoded tensors persist beside each output; `on_restart` is called if those of other work are discarded.
    ///
    /// # Errors
    /// As [`Calibrator::encode`].
    pub fn encode_all<'f>(
        &self,
        outputs: impl Iterator<Item = &'f mut [(Job, PathBuf)]>,
        resume: bool,
        on_restart: &(dyn Fn() + Sync),
        progress: &dyn Progress,
    ) -> Result<(Vec<EncodedTensors>, Vec<String>), Error> {
        let (mut all, mut notes) = (Vec::new(), Vec::new());
        for files in outputs {
            let output = files.first().map_or_else(PathBuf::new, |(_, path)| path.clone());
            let mut jobs: Vec<_> = files.iter_mut().map(|(job, _)| job).collect();
            let persistence = match resume {
                true => Persistence::Beside { output: &output, on_restart },
                false => Persistence::Temporary,
            };
            let (file, notes_of_output) = self.encode(&mut jobs, persistence, progress)?;
            all.push(file);
            notes.extend(notes_of_output);
        }
        Ok((all, notes))
    }

    /// Encodes the items of the files of one output into a file, and makes the items refer to it. Returns the file and
    /// notes for the user.
    ///
    /// # Errors
    /// As [`Calibrator::calibrate`]; if the file cannot be written.
    pub fn encode(
        &self,
        jobs: &mut [&mut Job],
        persistence: Persistence<'_>,
        progress: &dyn Progress,
    ) -> Result<(EncodedTensors, Vec<String>), Error> {
        let mut identity = vec![self.description.clone()];
        if matches!(persistence, Persistence::Beside { .. }) {
            for job in &*jobs {
                identity.push(job.fingerprint()?);
            }
        }
        let file = RefCell::new(EncodedTensors::open(persistence, &identity.join("\n"))?);
        let items: Vec<_> = jobs.iter().flat_map(|job| &job.items).collect();
        let changed: Vec<&Item> =
            items.into_iter().filter(|item| item.target != item.tensor.stored_type).collect();
        let calibrated = changed.iter().filter(|item| self.calibrates(item));
        let len = |item: &&&Item| item.target.byte_len(&item.tensor.shape);
        progress.begin("calibrating", calibrated.clone().filter_map(|item| len(&item)).sum());
        let mut notes = Notes::default();
        let find_encoded = |name: &str| {
            let bytes = file.borrow().get(name)?;
            progress.step(bytes.as_ref().map_or(0, Bytes::len) as u64)?;
            Ok(bytes)
        };
        let mut on_tensor = |tensor: CalibratedTensor| {
            let mapped = file.borrow_mut().add(&tensor.name, &tensor.bytes)?;
            notes.add(&tensor);
            progress.step(tensor.bytes.len() as u64)?;
            Ok(mapped)
        };
        let directory = file.borrow().directory().to_owned();
        let quantized =
            self.calibrate(&changed, &directory, &find_encoded, &mut on_tensor, progress)?;
        let file = file.into_inner();
        let source = file.source()?;
        for item in jobs.iter_mut().flat_map(|job| &mut job.items) {
            if let Some(offset) = file.offset(&item.tensor.name) {
                let stored = Stored { source: source.clone(), offset };
                item.tensor.stored_type = item.target;
                item.tensor.content = Content::Stored(stored);
            }
        }
        let mut notes = notes.into_texts();
        // A part alone is not a model.
        if self.parts == 1
            && let (Statistics::Text(text), Some(quantized)) = (&self.statistics, quantized)
        {
            notes.extend(text.evaluate(&quantized, progress)?);
        }
        Ok((file, notes))
    }

    /// Encodes items and passes the calibrated ones to `on_tensor`, except those that `find_encoded` returns. Returns
    /// the quantized model if the calibration runs it.
    ///
    /// # Errors
    /// As [`crate::calibrate()`].
    pub fn calibrate(
        &self,
        items: &[&Item],
        directory: &Path,
        find_encoded: &FindEncoded<'_>,
        on_tensor: &mut OnTensor<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Executor>>, Error> {
        match &self.statistics {
            Statistics::Text(text) => {
                text.calibrate(items, directory, find_encoded, on_tensor, progress).map(Some)
            }
            Statistics::Data(data) => {
                let items: Vec<&Item> =
                    items.iter().copied().filter(|item| self.calibrates(item)).collect();
                data.calibrate(&items, find_encoded, on_tensor, progress).map(|()| None)
            }
            Statistics::Weights => {
                let mut encoders = Encoders::default();
                for item in items.iter().filter(|item| self.calibrates(item)) {
                    if find_encoded(&item.tensor.name)?.is_none() {
                        on_tensor(encoders.encode_blockwise(item, progress)?)?;
                    }
                }
                Ok(None)
            }
        }
    }
}

/// Counts of tensors that the user should know about.
#[derive(Default)]
struct Notes {
    few_tokens: usize,
    dead_columns: usize,
    unreached: Vec<String>,
}

/// Maximum number of tensors named in a note.
const MAX_NAMES: usize = 5;

impl Notes {
    fn add(&mut self, tensor: &CalibratedTensor) {
        self.dead_columns += usize::from(tensor.dead_columns > 0);
        let recommended = (MIN_TOKENS_PER_COLUMN * tensor.columns) as u64;
        self.few_tokens += usize::from(tensor.tokens < recommended);
        if tensor.unreached > 0 {
            let count = match tensor.matrices {
                1 => String::new(),
                all => format!(" ({} of {all})", tensor.unreached),
            };
            self.unreached.push(format!("{}{count}", tensor.name));
        }
    }

    fn into_texts(self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.few_tokens > 0 {
            notes.push(format!(
                "{} tensors have fewer than {MIN_TOKENS_PER_COLUMN} calibration tokens per column, and their Hessians \
                 are damped more: use a longer text",
                self.few_tokens
            ));
        }
        if self.dead_columns > 0 {
            notes.push(format!(
                "{} tensors have columns that are never activated by the text",
                self.dead_columns
            ));
        }
        if !self.unreached.is_empty() {
            let more = self.unreached.len().saturating_sub(MAX_NAMES);
            let names = self.unreached[..self.unreached.len() - more].join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!(
                "the text routes no token to matrices of {names}{more}: their weights count equally"
            ));
        }
        notes
    }
}
