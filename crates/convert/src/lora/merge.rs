//! Merging of adapters into a model in one pass, without holding a whole matrix in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use gguf::{Array, Error, TensorType};
use gguf_pipeline::{Stored, Tensor};
use gguf_quantize::Quantization;
use gguf_quantize::recipe::Target;
use gguf_store::{Model, ModelTensor, Source};

use super::{Adapter, EMBEDDING, Pair, PairDims};

/// Key of the merged adapters: a string with name and scale per adapter.
const MERGED: &str = "gguf_kit.merged_adapters";

/// Base model with the adapters to merge.
pub struct Merge<'a> {
    base: &'a Model,
    sums: HashMap<String, Arc<Sum>>,
    replaced: HashMap<String, ModelTensor>,
    descriptions: Vec<String>,
}

impl<'a> Merge<'a> {
    /// Reads the matrices of the adapters, each with a scale (1 for the trained strength).
    ///
    /// # Errors
    /// If an adapter does not match the base model, or cannot be read.
    pub fn new(base: &'a Model, adapters: &[(Adapter, f32)]) -> Result<Self, Error> {
        let tensors = base.index();
        let mut sums: HashMap<String, Sum> = HashMap::new();
        let (mut replaced, mut descriptions) = (HashMap::new(), Vec::new());
        for (adapter, scale) in adapters {
            if let Some(misfit) = adapter.misfits(base).first() {
                let help = "specify the base model of the adapter; `gguf lora check` lists \
                            all mismatches";
                return Err(Error::request("adapter-other-base", misfit.clone(), help));
            }
            for (name, pair) in &adapter.pairs {
                // `misfits` has checked that both exist.
                let (Some(tensor), Some(dims)) = (tensors.get(name.as_str()), pair.dims(name))
                else {
                    continue;
                };
                let update = Update::read(name, pair, dims, scale * adapter.alpha)?;
                let sum = sums.entry(name.clone()).or_insert_with(|| Sum {
                    base: Tensor::of_model(tensor),
                    columns: dims.columns,
                    rows: dims.rows,
                    updates: Vec::new(),
                });
                sum.updates.push(update);
            }
            for tensor in &adapter.replaced {
                replaced.insert(tensor.info.name.to_string(), tensor.clone());
            }
            let name = adapter.metadata.str("general.name").unwrap_or("an adapter");
            descriptions.push(format!("{name} x {scale}"));
        }
        let sums = sums.into_iter().map(|(name, sum)| (name, Arc::new(sum))).collect();
        Ok(Self { base, sums, replaced, descriptions })
    }

    /// Plans the merged model with the types of `target`. [`Target::Copy`] keeps the types of the base model.
    ///
    /// # Errors
    /// As [`gguf_quantize::plan`], and if a quantized matrix changes but `options.allow_requantize` is false.
    pub fn plan(
        &self,
        target: Target,
        options: &gguf_quantize::QuantizeOptions,
    ) -> Result<Quantization, Error> {
        let mut planned = gguf_quantize::plan(self.base, target, options)?;
        for item in &mut planned.job.items {
            let name = item.tensor.name.clone();
            if let Some(sum) = self.sums.get(name.as_str()) {
                let stored = item.tensor.stored_type;
                if stored.is_quantized() && !options.allow_requantize {
                    let what = format!("`{name}` of the base model is quantized as {stored}");
                    let help =
                        "merge into an F16 or F32 file, or allow the loss with --allow-requantize";
                    return Err(Error::request("requantize", what, help));
                }
                let at = Stored { source: sum.clone(), offset: 0 };
                item.tensor = Tensor::stored(name, item.tensor.shape, TensorType::F32, at);
            } else if let Some(tensor) = self.replaced.get(&name) {
                item.tensor = Tensor::of_model(tensor);
            }
        }
        let merged = Array::from_strings(&self.descriptions);
        planned.job.metadata.set(MERGED, merged);
        Ok(planned)
    }
}

/// Matrix of the base model plus the updates of adapters, computed in F32 when it is read.
struct Sum {
    base: Tensor,
    columns: u64,
    rows: u64,
    updates: Vec<Update>,
}

/// Update of a matrix by an adapter.
struct Update {
    rank: usize,
    /// Elements of shape `[matrices, rank, columns]`.
    a: Vec<f32>,
    /// Scaled elements of shape `[matrices, rows, rank]`.
    b: Vec<f32>,
}

impl Update {
    fn read(name: &str, pair: &Pair, dims: PairDims, strength: f32) -> Result<Self, Error> {
        let (rank, columns) = (dims.rank as usize, dims.columns as usize);
        let (mut a, mut b) = (floats(&pair.a)?, floats(&pair.b)?);
        if name == EMBEDDING {
            // `a` has a row per token, `b` one per column.
            let turned = (0..rank * columns).map(|i| b[i % columns * rank + i / columns]).collect();
            (a, b) = (turned, a);
        }
        let scale = strength / dims.rank as f32;
        b.iter_mut().for_each(|x| *x *= scale);
        Ok(Self { rank, a, b })
    }

    /// Adds the update to `values`, a row of the base matrix.
    fn add_to(&self, values: &mut [f32], row: usize, rows: usize) {
        let columns = values.len();
        let first = row / rows * self.rank;
        for k in 0..self.rank {
            let factor = self.b[row * self.rank + k];
            let a = &self.a[(first + k) * columns..][..columns];
            values.iter_mut().zip(a).for_each(|(x, a)| *x += factor * a);
        }
    }
}

/// Returns all elements of a tensor.
pub(crate) fn floats(tensor: &ModelTensor) -> Result<Vec<f32>, Error> {
    let tensor = Tensor::of_model(tensor);
    rows_of(&tensor, 0..tensor.rows())
}

/// Returns the decoded elements of some rows.
pub(super) fn rows_of(tensor: &Tensor, rows: Range<u64>) -> Result<Vec<f32>, Error> {
    let mut stored = Vec::new();
    let n = rows.end - rows.start;
    tensor.read_rows(rows.start, n, &mut stored)?;
    let mut values = vec![0.0; (n * tensor.shape.row_len()) as usize];
    gguf_quant::decode_row(tensor.stored_type, &stored, &mut values)
        .map_err(|fault| tensor.at_fault(Error::weights(&tensor.name, fault.to_string())))?;
    Ok(values)
}

impl Source for Sum {
    fn byte_len(&self) -> u64 {
        self.base.rows() * self.columns * size_of::<f32>() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let row_bytes = self.columns * size_of::<f32>() as u64;
        let end = offset + buffer.len() as u64;
        let rows = offset / row_bytes..end.div_ceil(row_bytes);
        let first = rows.start;
        let mut values = rows_of(&self.base, rows)?;
        for (row, values) in (first as usize..).zip(values.chunks_exact_mut(self.columns as usize))
        {
            for update in &self.updates {
                update.add_to(values, row, self.rows as usize);
            }
        }
        // Readers never read part of an element.
        let skipped = (offset - first * row_bytes) as usize / size_of::<f32>();
        for (out, value) in buffer.chunks_exact_mut(size_of::<f32>()).zip(&values[skipped..]) {
            out.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}
