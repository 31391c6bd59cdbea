//! Hessians of the matrices of a model in a GGUF file, which several machines and outputs can share.
//!
//! The file has `general.type = "calibration"`, the keys of the calibration text, and for each set of tensors that share
//! an input, where `NAME` is the first of them:
//!
//! - `NAME.moments`, F32 `[n (n + 1) / 2, matrices]`: the lower triangle of `X Xᵀ`, row by row,
//! - `NAME.counts`, F32 `[matrices]`: the number of tokens.
//!
//! `gguf_kit.calibration.tensors` lists all tensors; `gguf_kit.calibration.inputs` has the index of the Hessian of each.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gguf::{Array, Error, Metadata, Shape, TensorType, Value};
use gguf_models::{GraphSource, model_graph};
use gguf_pipeline::{Content, Item, Job, Stored, Tensor};
use gguf_runtime::{Executor, Precision};
use gguf_store::{Model, Overwrite, Progress};
use gguf_tokenizer::Tokenizer;

use super::encoded_file::{EncodedTensors, Persistence};
use super::text::{CalibrationText, TextCalibration};
use super::{KEY_PREFIX, audio};
use crate::{
    CalibratedTensor, Damping, Encoders, FindEncoded, Hessian, METHOD, OnTensor, collect_hessians,
};

const KIND: &str = "calibration";

/// Writes the Hessians of `model`, which the user named `source`, for a text, or for an audio file if it is a Whisper
/// model.
///
/// # Errors
/// If the model or the text cannot be read, the model cannot be calibrated by it, or the file cannot be written.
pub fn save_hessians(
    model: &Model,
    source: &str,
    text: &CalibrationText,
    output: &Path,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<(), Error> {
    overwrite.check(output)?;
    let in_file = |error: Error| error.in_file(source.as_ref());
    let graph = model_graph(model.metadata(), Executor::tensors(model), GraphSource::Auto);
    let graph = graph.map_err(in_file)?;
    let executor = Executor::new(model, graph, Precision::default()).map_err(in_file)?;
    let executor = Arc::new(executor);
    let mut file = EncodedTensors::open(Persistence::Temporary, "")?;
    let directory = file.directory().to_owned();
    let (mut names, mut inputs, mut stages) = (Vec::new(), Vec::new(), Vec::new());
    let mut on_hessians = |tensors: &[String], hessians: &[Hessian]| {
        let n = hessians.first().map_or(0, |hessian| hessian.n);
        let mut sums = Vec::with_capacity(4 * hessians.len() * n * (n + 1) / 2);
        let mut counts = Vec::new();
        for hessian in hessians {
            counts.push(hessian.tokens as f32);
            for (i, row) in hessian.matrix.chunks_exact(n.max(1)).enumerate() {
                sums.extend(row[..=i].iter().flat_map(|x| x.to_le_bytes()));
            }
        }
        let (first, number) = (&tensors[0], stages.len() as u32);
        file.add(first, &sums)?;
        for name in tensors {
            names.push(name.clone());
            inputs.push(number);
        }
        stages.push((first.clone(), n as u64 * (n as u64 + 1) / 2, counts));
        progress.step(tensors.len() as u64)
    };
    let encoder = executor.graph().encoder();
    let keys = if encoder.is_some_and(|(program, _)| program.features_width().is_some()) {
        audio::collect(&executor, model.metadata(), text, &mut on_hessians, progress)?
    } else {
        let tokenizer = Tokenizer::from_metadata(model.metadata(), Default::default());
        let tokenizer = tokenizer.map_err(in_file)?;
        let text = TextCalibration::new(executor, model.metadata(), &tokenizer, text, progress)?;
        progress.begin("collecting", text.matrices().len() as u64);
        collect_hessians(text.executor(), &text.ids, &directory, &mut on_hessians, progress)?;
        text.keys()
    };
    let mut metadata = Metadata::default();
    metadata.set("general.type", KIND);
    for (key, value) in keys {
        metadata.set(key, value);
    }
    metadata.set(format!("{KEY_PREFIX}tensors"), Value::Array(Array::from_strings(names)));
    metadata.set(format!("{KEY_PREFIX}inputs"), Value::Array(Array::from(&inputs[..])));
    let source = file.source()?;
    let mut items = Vec::with_capacity(2 * stages.len());
    for (name, len, counts) in stages {
        let matrices = counts.len() as u64;
        let (Some(sums_shape), Some(counts_shape)) =
            (Shape::new(&[len, matrices]), Shape::new(&[matrices]))
        else {
            continue;
        };
        let stored = Stored { source: source.clone(), offset: file.offset(&name).unwrap_or(0) };
        let name_of_sums = format!("{name}.moments");
        let sums = Tensor::stored(name_of_sums, sums_shape, TensorType::F32, stored);
        let counts = Tensor {
            name: format!("{name}.counts"),
            shape: counts_shape,
            stored_type: TensorType::F32,
            content: Content::Values(counts),
        };
        items.extend([sums, counts].map(|tensor| Item::new(tensor, TensorType::F32)));
    }
    let job = Job { metadata, items, check_finite: true, order: Default::default() };
    job.write(output, overwrite, progress)
}

/// A file of Hessians.
pub(super) struct HessianFile {
    model: Model,
    /// Name of the Hessian of each tensor.
    inputs: HashMap<String, String>,
}

impl HessianFile {
    /// Opens a file of [`save_hessians`].
    ///
    /// # Errors
    /// `calibration-data` if the GGUF holds no Hessians; if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = Model::open(path)?;
        let metadata = model.metadata();
        let wrong_kind = || {
            let what = format!("{} is not a file of Hessians", path.display());
            let help = "write one with `gguf imatrix MODEL -f TEXT --hessian -o FILE`";
            Error::request("calibration-data", what, help)
        };
        if metadata.str("general.type") != Some(KIND) {
            return Err(wrong_kind());
        }
        let array =
            |name: &str| metadata.get(&format!("{KEY_PREFIX}{name}")).and_then(Value::as_array);
        let (Some(names), Some(numbers)) = (array("tensors"), array("inputs")) else {
            return Err(wrong_kind());
        };
        let suffix = ".moments";
        let tensors = model.tensors().iter().map(|tensor| &*tensor.info.name);
        let stages: Vec<&str> = tensors.filter_map(|name| name.strip_suffix(suffix)).collect();
        let mut inputs = HashMap::new();
        for (name, number) in names.iter().zip(numbers.iter()) {
            let stage = number.to_u64().and_then(|number| stages.get(number as usize));
            let (Some(name), Some(stage)) = (name.as_str(), stage) else {
                return Err(wrong_kind());
            };
            inputs.insert(name.to_owned(), (*stage).to_owned());
        }
        Ok(Self { model, inputs })
    }

    /// Returns the SHA-256 of the calibration text.
    pub fn text_digest(&self) -> Option<String> {
        self.model.metadata().str(&format!("{KEY_PREFIX}text_sha256")).map(str::to_owned)
    }

    /// Returns a description that differs between different calibrations.
    pub fn describe(&self) -> String {
        let keys = self.keys().into_iter().map(|(key, value)| format!("{key}={value}"));
        keys.collect::<Vec<_>>().join(", ")
    }

    /// Returns the metadata keys of files that are calibrated with these Hessians.
    pub fn keys(&self) -> Vec<(String, Value)> {
        let is_copied = |key: &str| {
            let name = key.strip_prefix(KEY_PREFIX);
            name.is_some_and(|name| !matches!(name, "tensors" | "inputs" | "method"))
        };
        let pairs = self.model.metadata().iter().filter(|(key, _)| is_copied(key));
        let copied = pairs.map(|(key, value)| (key.to_owned(), value.clone()));
        let method = (format!("{KEY_PREFIX}method"), Value::from(format!("{METHOD}-data")));
        [method].into_iter().chain(copied).collect()
    }

    /// Returns the row length times the number of matrices of each tensor.
    pub fn matrices(&self) -> HashMap<String, usize> {
        let index = self.model.index();
        let len = |stage: &str| {
            let shape = index.get(format!("{stage}.moments").as_str()).map(|t| t.info.shape);
            let matrices = shape.map_or(1, |shape| shape.iter().skip(1).product::<u64>());
            columns(shape.map_or(0, |shape| shape.row_len())) * matrices as usize
        };
        self.inputs.iter().map(|(name, stage)| (name.clone(), len(stage))).collect()
    }

    /// Encodes items, all of which have a Hessian in the file.
    pub fn calibrate(
        &self,
        items: &[&Item],
        find_encoded: &FindEncoded<'_>,
        on_tensor: &mut OnTensor<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let damping = Damping::default();
        let mut encoders = Encoders::default();
        let mut remaining: Vec<&Item> = Vec::new();
        for item in items {
            if find_encoded(&item.tensor.name)?.is_none() {
                remaining.push(item);
            }
        }
        while let Some(first) = remaining.first() {
            let stage = self.inputs[&first.tensor.name].clone();
            let (group, others): (Vec<&Item>, _) =
                remaining.iter().partition(|item| self.inputs[&item.tensor.name] == stage);
            remaining = others;
            let hessians = self.hessians(&stage, group[0])?;
            let tensors: Vec<CalibratedTensor> =
                encoders.encode(&group, hessians, Vec::new(), damping, progress)?;
            tensors.into_iter().try_for_each(|tensor| on_tensor(tensor).map(|_| ()))?;
        }
        Ok(())
    }

    /// Reads the Hessians `stage` for an item.
    fn hessians(&self, stage: &str, item: &Item) -> Result<Vec<Hessian>, Error> {
        let index = self.model.index();
        let read = |suffix: &str| -> Result<Option<(u64, Vec<f32>)>, Error> {
            let Some(tensor) = index.get(format!("{stage}.{suffix}").as_str()) else {
                return Ok(None);
            };
            let tensor = Tensor::of_model(tensor);
            Ok(Some((tensor.shape.row_len(), tensor.decode_rows(0, tensor.rows())?)))
        };
        let other_model = || {
            let name = &item.tensor.name;
            let what = format!("the Hessians of `{stage}` do not fit the shape of `{name}`");
            let help = "they belong to another model: write those of this model";
            Error::request("calibration-data", what, help)
        };
        let (Some((len, sums)), Some((_, counts))) = (read("moments")?, read("counts")?) else {
            return Err(other_model());
        };
        let (n, matrices) = (columns(len), item.tensor.shape.iter().skip(2).product::<u64>());
        if n as u64 != item.tensor.shape.row_len() || counts.len() as u64 != matrices {
            return Err(other_model());
        }
        let hessian = |(sums, count): (&[f32], &f32)| {
            let mut hessian = Hessian::new(n, false);
            hessian.tokens = *count as u64;
            let mut sums = sums.iter();
            for (i, row) in hessian.matrix.chunks_exact_mut(n).enumerate() {
                row.iter_mut().take(i + 1).zip(&mut sums).for_each(|(to, from)| *to = *from);
            }
            hessian.symmetrize();
            hessian
        };
        let hessians: Vec<Hessian> =
            sums.chunks_exact((len as usize).max(1)).zip(&counts).map(hessian).collect();
        let is_faulty = |hessian: &Hessian| hessian.first_non_finite().is_some();
        if hessians.len() != counts.len() || hessians.iter().any(is_faulty) {
            return Err(other_model());
        }
        Ok(hessians)
    }
}

/// Returns the `n` with `n (n + 1) / 2 = len`, or 0.
fn columns(len: u64) -> usize {
    let n = ((8.0 * len as f64 + 1.0).sqrt() as u64).saturating_sub(1) / 2;
    let fits = |n: u64| n.checked_mul(n + 1).is_some_and(|twice| twice / 2 == len);
    [n.saturating_sub(1), n, n + 1].into_iter().find(|n| fits(*n)).unwrap_or(0) as usize
}
