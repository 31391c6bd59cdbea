//! Moments of what enters the matrices of a model, in a file: one that other machines can share, and that serves any
//! number of outputs.
//!
//! A GGUF with `general.type = "calibration"`, the keys of what was read, and for tensors that are multiplied with
//! the same:
//!
//! - `NAME.moments`, F32 `[n (n + 1) / 2, matrices]`: sums of `x[i] x[j]` for `j <= i`, row by row, `NAME` being the
//!   first of them,
//! - `NAME.counts`, F32 `[matrices]`: how many tokens were summed.
//!
//! `gguf_kit.calibration.tensors` names all tensors, and `gguf_kit.calibration.inputs` says for each of them the number
//! of its moments, counted from 0.

use std::collections::HashMap;
use std::path::Path;

use gguf::{Array, Metadata, Shape, TensorType, Value};
use gguf_calibrate::{Calibrated, Each, Encoders, METHOD, Made, Moments, Options, collect};
use gguf_pipeline::{Content, Item, Job, Stored, Tensor};
use gguf_store::{Model, Overwrite, Progress};
use gguf_tokenizer::Tokenizer;

use super::made::{Keep, MadeFile};
use super::reading::{Reader, Reading};
use super::{PREFIX, hearing};
use crate::run::run_model;
use crate::{Error, open, run};

const KIND: &str = "calibration";

/// Saves what a model shows while it reads a text, or, if it is one that hears, while it writes down a recording.
///
/// # Errors
/// If the model or the text cannot be read, the model cannot read it, or the file cannot be written.
pub fn save(
    source: &str,
    reading: &Reading,
    output: &Path,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<(), Error> {
    overwrite.check(output)?;
    let opened = open(source)?;
    let running = run_model(opened.model(), Vec::new(), source, &run::Options::default())?;
    let mut file = MadeFile::open(Keep::Nothing, "")?;
    let directory = file.directory().to_owned();
    let (mut names, mut inputs, mut stages) = (Vec::new(), Vec::new(), Vec::new());
    let mut each = |tensors: &[String], moments: &[Moments]| {
        let n = moments.first().map_or(0, |moments| moments.n);
        let mut sums = Vec::with_capacity(4 * moments.len() * n * (n + 1) / 2);
        let mut counts = Vec::new();
        for moments in moments {
            counts.push(moments.tokens as f32);
            for (i, row) in moments.squares.chunks_exact(n.max(1)).enumerate() {
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
    let encoder = running.executor.graph().encoder();
    let keys = if encoder.is_some_and(|(program, _)| program.features_width().is_some()) {
        hearing::collect(&running, reading, &mut each, progress)?
    } else {
        let tokenizer = Tokenizer::from_metadata(&running.metadata, Default::default())
            .map_err(|error| error.in_file(source.as_ref()))?;
        let reader = Reader::new(running.executor, &tokenizer, reading)?;
        progress.begin("collecting", reader.matrices().len() as u64);
        collect(reader.executor(), &reader.ids, &directory, &mut each, progress)?;
        reader.keys()
    };
    let mut metadata = Metadata::default();
    metadata.set("general.type", KIND);
    for (key, value) in keys {
        metadata.set(key, value);
    }
    metadata.set(format!("{PREFIX}tensors"), Value::Array(Array::from_strings(names)));
    metadata.set(format!("{PREFIX}inputs"), Value::Array(Array::from(&inputs[..])));
    let source = file.source()?;
    let mut items = Vec::with_capacity(2 * stages.len());
    for (name, len, counts) in stages {
        let matrices = counts.len() as u64;
        let (Some(of_moments), Some(of_counts)) =
            (Shape::new(&[len, matrices]), Shape::new(&[matrices]))
        else {
            continue;
        };
        let at = Stored { source: source.clone(), offset: file.place(&name).unwrap_or(0) };
        let moments = Tensor::stored(format!("{name}.moments"), of_moments, TensorType::F32, at);
        let counts = Tensor {
            name: format!("{name}.counts"),
            shape: of_counts,
            stored_type: TensorType::F32,
            content: Content::Values(counts),
        };
        items.extend([moments, counts].map(|tensor| Item::new(tensor, TensorType::F32)));
    }
    let job = Job { metadata, items, check_finite: true, order: Default::default() };
    job.write(output, overwrite, progress)
}

/// A file of moments.
pub(super) struct Saved {
    model: Model,
    /// Of each tensor the name of its moments.
    inputs: HashMap<String, String>,
}

impl Saved {
    /// Opens it.
    ///
    /// # Errors
    /// `calibration-data` if it is a GGUF of another kind; if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = Model::open(path)?;
        let metadata = model.metadata();
        let other = || {
            let what = format!("{} holds no moments of a model", path.display());
            let help = "make them with `gguf imatrix MODEL -f TEXT --moments -o FILE`";
            Error::request("calibration-data", what, help)
        };
        if metadata.str("general.type") != Some(KIND) {
            return Err(other());
        }
        let array = |name: &str| metadata.get(&format!("{PREFIX}{name}")).and_then(Value::as_array);
        let (Some(names), Some(numbers)) = (array("tensors"), array("inputs")) else {
            return Err(other());
        };
        let suffix = ".moments";
        let tensors = model.tensors().iter().map(|tensor| &*tensor.info.name);
        let stages: Vec<&str> = tensors.filter_map(|name| name.strip_suffix(suffix)).collect();
        let mut inputs = HashMap::new();
        for (name, number) in names.iter().zip(numbers.iter()) {
            let stage = number.to_u64().and_then(|number| stages.get(number as usize));
            let (Some(name), Some(stage)) = (name.as_str(), stage) else { return Err(other()) };
            inputs.insert(name.to_owned(), (*stage).to_owned());
        }
        Ok(Self { model, inputs })
    }

    /// The digest of the text that was read.
    pub fn text(&self) -> Option<String> {
        self.model.metadata().str(&format!("{PREFIX}text_sha256")).map(str::to_owned)
    }

    /// What it was made by, so that another one is noticed.
    pub fn describe(&self) -> String {
        let keys = self.keys().into_iter().map(|(key, value)| format!("{key}={value}"));
        keys.collect::<Vec<_>>().join(", ")
    }

    /// What stands in files that are made by it.
    pub fn keys(&self) -> Vec<(String, Value)> {
        let is_told = |key: &str| {
            let name = key.strip_prefix(PREFIX);
            name.is_some_and(|name| !matches!(name, "tensors" | "inputs" | "method"))
        };
        let pairs = self.model.metadata().iter().filter(|(key, _)| is_told(key));
        let told = pairs.map(|(key, value)| (key.to_owned(), value.clone()));
        let method = (format!("{PREFIX}method"), Value::from(format!("{METHOD}-data")));
        [method].into_iter().chain(told).collect()
    }

    /// Of each tensor the numbers of a row, times matrices.
    pub fn matrices(&self) -> HashMap<String, usize> {
        let index = self.model.index();
        let len = |stage: &str| {
            let shape = index.get(format!("{stage}.moments").as_str()).map(|t| t.info.shape);
            let matrices = shape.map_or(1, |shape| shape.iter().skip(1).product::<u64>());
            columns(shape.map_or(0, |shape| shape.row_len())) * matrices as usize
        };
        self.inputs.iter().map(|(name, stage)| (name.clone(), len(stage))).collect()
    }

    /// Encodes items, all of which it has.
    pub fn calibrate(
        &self,
        items: &[&Item],
        made: &Made<'_>,
        each: &mut Each<'_>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let damping = Options::default().damping;
        let mut encoders = Encoders::default();
        let mut left: Vec<&Item> = Vec::new();
        for item in items {
            if made(&item.tensor.name)?.is_none() {
                left.push(item);
            }
        }
        while let Some(first) = left.first() {
            let stage = self.inputs[&first.tensor.name].clone();
            let (these, others): (Vec<&Item>, _) =
                left.iter().partition(|item| self.inputs[&item.tensor.name] == stage);
            left = others;
            let moments = self.moments(&stage, these[0])?;
            let made: Vec<Calibrated> =
                encoders.encode(&these, moments, Vec::new(), damping, progress)?;
            made.into_iter().try_for_each(&mut *each)?;
        }
        Ok(())
    }

    /// The moments of a name, for an item.
    fn moments(&self, stage: &str, item: &Item) -> Result<Vec<Moments>, Error> {
        let index = self.model.index();
        let read = |suffix: &str| -> Result<Option<(u64, Vec<f32>)>, Error> {
            let Some(tensor) = index.get(format!("{stage}.{suffix}").as_str()) else {
                return Ok(None);
            };
            let tensor = Tensor::of_model(tensor);
            Ok(Some((tensor.shape.row_len(), tensor.decode_rows(0, tensor.rows())?)))
        };
        let other = || {
            let name = &item.tensor.name;
            let what = format!("the moments of `{stage}` do not fit the shape of `{name}`");
            Error::request(
                "calibration-data",
                what,
                "they are of another model: save them of this one",
            )
        };
        let (Some((len, sums)), Some((_, counts))) = (read("moments")?, read("counts")?) else {
            return Err(other());
        };
        let (n, matrices) = (columns(len), item.tensor.shape.iter().skip(2).product::<u64>());
        if n as u64 != item.tensor.shape.row_len() || counts.len() as u64 != matrices {
            return Err(other());
        }
        let of = |(sums, count): (&[f32], &f32)| {
            let mut moments = Moments::new(n, false);
            moments.tokens = *count as u64;
            let mut sums = sums.iter();
            for (i, row) in moments.squares.chunks_exact_mut(n).enumerate() {
                row.iter_mut().take(i + 1).zip(&mut sums).for_each(|(to, from)| *to = *from);
            }
            moments.complete();
            moments
        };
        let made: Vec<Moments> =
            sums.chunks_exact((len as usize).max(1)).zip(&counts).map(of).collect();
        if made.len() != counts.len() || made.iter().any(|moments| moments.fault().is_some()) {
            return Err(other());
        }
        Ok(made)
    }
}

/// The `n` of `n (n + 1) / 2`; 0 if it is of none.
fn columns(len: u64) -> usize {
    let n = ((8.0 * len as f64 + 1.0).sqrt() as u64).saturating_sub(1) / 2;
    let is_of = |n: u64| n.checked_mul(n + 1).is_some_and(|twice| twice / 2 == len);
    [n.saturating_sub(1), n, n + 1].into_iter().find(|n| is_of(*n)).unwrap_or(0) as usize
}
