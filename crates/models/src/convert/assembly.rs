//! Assembly of output tensors from checkpoint tensors.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use gguf::{Error, Shape, TensorType};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_pipeline::{Content, Step, Stored, Tensor};

use super::mapping::{ExpertSlot, MappedTensor};

/// Returns the error of weights that do not match config.json.
pub fn misfit(path: &Path, what: String) -> Error {
    let help = "check that the weights are complete and match `config.json`";
    Error::input("checkpoint-misfit", path, what, help)
}

/// Returns the error of a tensor that does not match config.json.
pub(crate) fn tensor_misfit(checkpoint: &Checkpoint, entry: &Entry, what: impl Display) -> Error {
    misfit(&checkpoint.path_of(entry), format!("tensor `{}` {what}", entry.name))
}

/// Builder of the output tensors, in the order in which the checkpoint's tensors complete them.
pub struct Assembly<'c> {
    checkpoint: &'c Checkpoint,
    /// Name suffixes of tensors whose parts are stacked as rows.
    rows_of_parts: &'static [&'static str],
    tensors: Vec<Tensor>,
    /// Parts of incomplete tensors, by name.
    partial: BTreeMap<String, Vec<Option<Tensor>>>,
}

impl<'c> Assembly<'c> {
    /// Starts with tensors that no checkpoint file holds.
    pub fn new(checkpoint: &'c Checkpoint, computed: Vec<Tensor>) -> Self {
        Self { checkpoint, rows_of_parts: &[], tensors: computed, partial: BTreeMap::new() }
    }

    /// Sets the name suffixes of tensors whose parts are stacked as rows instead of along a new dimension.
    pub fn rows_of_parts(self, ends: &'static [&'static str]) -> Self {
        Self { rows_of_parts: ends, ..self }
    }

    /// Returns whether the model has a tensor.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|tensor| tensor.name == name)
    }

    /// Adds a computed tensor.
    pub fn push(&mut self, tensor: Tensor) {
        self.tensors.push(tensor);
    }

    /// Adds the tensors that a checkpoint tensor, in this shape, maps to.
    pub fn add(
        &mut self,
        entry: &Entry,
        shape: Shape,
        made: Vec<MappedTensor>,
    ) -> Result<(), Error> {
        for MappedTensor { name, steps, slot } in made {
            let tensor = self.changed(entry, shape, &name, &steps)?;
            let Some(ExpertSlot { index, count }) = slot else {
                self.tensors.push(tensor);
                continue;
            };
            let fault = |what: String| tensor_misfit(self.checkpoint, entry, what);
            // Bounds memory use for a damaged count.
            if count as usize > self.checkpoint.entries.len() {
                let entries = self.checkpoint.entries.len();
                return Err(fault(format!("needs {count} tensors, but there are only {entries}")));
            }
            let missing = || fault(format!("has an index beyond the {count} of the configuration"));
            if index >= count {
                return Err(missing());
            }
            let parts =
                self.partial.entry(name.clone()).or_insert_with(|| vec![None; count as usize]);
            parts[index as usize] = Some(tensor);
            if let Some(parts) = parts.iter().cloned().collect::<Option<Vec<_>>>() {
                self.partial.remove(&name);
                let joined = match self.rows_of_parts.iter().any(|end| name.ends_with(end)) {
                    true => Tensor::stacked(name, parts),
                    false => Tensor::joined(name, parts),
                };
                let joined =
                    joined.map_err(|misfit| tensor_misfit(self.checkpoint, entry, misfit))?;
                self.tensors.push(joined);
            }
        }
        Ok(())
    }

    /// Adds a tensor of concatenated parts of a checkpoint tensor.
    pub fn rejoin(
        &mut self,
        entry: &Entry,
        shape: Shape,
        name: String,
        parts: &[Vec<Step>],
    ) -> Result<(), Error> {
        let parts = parts.iter().map(|steps| self.changed(entry, shape, &name, steps));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let joined = Tensor::joined(name, parts)
            .and_then(|joined| joined.changed(Step::Reshape { from: shape, to: shape }));
        self.tensors.push(joined.map_err(|misfit| tensor_misfit(self.checkpoint, entry, misfit))?);
        Ok(())
    }

    /// Applies these steps to a checkpoint tensor.
    fn changed(
        &self,
        entry: &Entry,
        shape: Shape,
        name: &str,
        steps: &[Step],
    ) -> Result<Tensor, Error> {
        if entry.tensor_type.is_integer() && !steps.contains(&Step::Whole) {
            let what = format!("has the type {}, which no weight has", entry.tensor_type);
            return Err(tensor_misfit(self.checkpoint, entry, what));
        }
        let changed = |stored: Tensor| {
            let stored = Tensor { name: name.to_owned(), ..stored };
            steps.iter().copied().try_fold(stored, Tensor::changed)
        };
        let tensor = match (changed(stored(self.checkpoint, entry, shape)), entry.floats) {
            // Quantized tensors cannot be transposed.
            (Err(_), Some(_)) => changed(decoded(self.checkpoint, entry, shape)),
            (result, _) => result,
        };
        tensor.map_err(|misfit| tensor_misfit(self.checkpoint, entry, misfit))
    }

    /// Returns all tensors. Fails if parts of a tensor are missing.
    pub fn finish(self, config: &Config) -> Result<Vec<Tensor>, Error> {
        if let Some((name, parts)) = self.partial.first_key_value() {
            let found = parts.iter().flatten().count();
            let what = format!("has {found} of the {} parts of `{name}`", parts.len());
            return Err(misfit(config.path(), what));
        }
        Ok(self.tensors)
    }
}

/// Fails if there are unknown tensors. The error lists up to 20 of them.
pub fn refuse_unknown(
    unknown: &[&Entry],
    architecture: &str,
    checkpoint: &Checkpoint,
) -> Result<(), Error> {
    const LISTED: usize = 20;
    let [first, others @ ..] = unknown else { return Ok(()) };
    let mut what = format!("tensor `{}` is not a tensor of {architecture} models", first.name);
    if !others.is_empty() {
        let names: Vec<_> = others.iter().take(LISTED).map(|other| &*other.name).collect();
        what += &format!(", and {} more do not: {}", others.len(), names.join(", "));
        if others.len() > LISTED {
            what += ", ...";
        }
    }
    let help = "check that the weights match `config.json`";
    Err(Error::input("checkpoint-tensor-unexpected", &checkpoint.path_of(first), what, help))
}

/// Returns a checkpoint tensor under its own name, in a shape with the same number of elements.
pub fn stored(checkpoint: &Checkpoint, entry: &Entry, shape: Shape) -> Tensor {
    let source = checkpoint.files[entry.file].source.clone();
    let at = Stored { source, offset: entry.offset };
    Tensor::stored(&*entry.name, shape, entry.tensor_type, at)
}

/// Returns a checkpoint tensor without any step.
///
/// # Errors
/// If it has more than four dimensions.
pub fn unmodified(checkpoint: &Checkpoint, entry: &Entry) -> Result<Tensor, Error> {
    Ok(stored(checkpoint, entry, shape(checkpoint, entry)?))
}

/// Returns the shape of a checkpoint tensor in GGUF's order of dimensions, which is the reverse of the
/// checkpoint's.
///
/// # Errors
/// If it has more than four dimensions.
pub fn shape(checkpoint: &Checkpoint, entry: &Entry) -> Result<Shape, Error> {
    let dims: Vec<u64> = entry.shape.iter().rev().copied().collect();
    Shape::new(&dims).ok_or_else(|| {
        let what = format!("tensor `{}` has {} dimensions", entry.name, dims.len());
        Error::input(
            "checkpoint-tensor-unexpected",
            &checkpoint.path_of(entry),
            what,
            "a GGUF tensor has at most four",
        )
    })
}

/// Returns the shape of a vector.
pub fn vector_shape(len: u64) -> Shape {
    Shape::new(&[len]).unwrap_or_else(|| unreachable!("one dimension is no more than four"))
}

/// Returns the elements of a checkpoint tensor.
pub fn elements(checkpoint: &Checkpoint, entry: &Entry) -> Result<Vec<f32>, Error> {
    let shape = vector_shape(entry.shape.iter().product());
    let tensor = stored(checkpoint, entry, shape).changed(Step::Decode);
    let tensor = tensor.map_err(|misfit| tensor_misfit(checkpoint, entry, misfit))?;
    let mut bytes = Vec::new();
    tensor.read_rows(0, 1, &mut bytes)?;
    let (numbers, _) = bytes.as_chunks();
    Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

/// Returns a quantized tensor decoded to F32.
fn decoded(checkpoint: &Checkpoint, entry: &Entry, shape: Shape) -> Tensor {
    let blocks = stored(checkpoint, entry, shape);
    let Some(file) = entry.floats else { return blocks };
    let stored = Stored { source: checkpoint.files[file].source.clone(), offset: 0 };
    Tensor::stored(blocks.name, blocks.shape, TensorType::F32, stored)
}

/// Returns a computed I64 vector.
pub fn integer_list(name: &str, numbers: &[i64]) -> Tensor {
    let shape = vector_shape(numbers.len() as u64);
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Tensor::stored(name, shape, TensorType::I64, Stored { source: Arc::new(bytes), offset: 0 })
}

/// Returns a computed F32 vector.
pub fn computed(name: String, values: Vec<f32>) -> Tensor {
    let shape = vector_shape(values.len() as u64);
    Tensor { name, shape, stored_type: TensorType::F32, content: Content::Values(values) }
}
