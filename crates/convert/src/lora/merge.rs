//! Merging of adapters into a model in one pass, without holding a whole matrix in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use gguf::{Array, Error, Metadata, TensorType};
use gguf_lora::{Adapter, Change, EMBEDDING};
use gguf_models::schema::{self, Expected, Presence};
use gguf_pipeline::{Stored, Tensor};
use gguf_quantize::Quantization;
use gguf_quantize::recipe::Target;
use gguf_store::{Model, Source};

/// Key of the merged adapters: a string with name and scale per adapter.
const MERGED: &str = "gguf_kit.merged_adapters";

/// Output projection, whose place the token embedding takes where it is missing.
const OUTPUT: &str = "output.weight";

/// Base model with the adapters to merge.
pub struct Merge<'a> {
    base: &'a Model,
    sums: HashMap<String, Arc<Sum>>,
    descriptions: Vec<String>,
    /// Whether the output projection is tied to a token embedding that changes, and gets a tensor of its own.
    unties_output: bool,
}

impl<'a> Merge<'a> {
    /// Reads the matrices of the adapters, each with a scale (1 for the trained strength).
    ///
    /// # Errors
    /// If an adapter does not match the base model, or cannot be read; if it changes a token embedding that is also the
    /// output projection of an architecture without a tensor for it.
    pub fn new(base: &'a Model, adapters: &[(Adapter, f32)]) -> Result<Self, Error> {
        let (mut sums, mut descriptions) = (HashMap::new(), Vec::new());
        for (adapter, scale) in adapters {
            adapter.require_fit(base)?;
            let name = adapter.metadata.str("general.name").unwrap_or("an adapter");
            descriptions.push(format!("{name} x {scale}"));
        }
        for tensor in base.tensors() {
            if let Some(change) = Change::read(tensor, adapters)? {
                let sum = Sum { base: Tensor::of_model(tensor), change };
                sums.insert(tensor.info.name.to_string(), Arc::new(sum));
            }
        }
        let adapts = |name| adapters.iter().any(|(adapter, _)| adapter.pairs.contains_key(name));
        let has_output = base.index().contains_key(OUTPUT);
        let unties_output = !has_output && adapts(EMBEDDING) && is_tied(base.metadata())?;
        Ok(Self { base, sums, descriptions, unties_output })
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
        if self.unties_output {
            let items = &planned.job.items;
            let output = items.iter().find(|item| item.tensor.name == EMBEDDING).cloned();
            planned.job.items.extend(output.map(|mut item| {
                item.tensor.name = OUTPUT.into();
                item
            }));
            planned.notes.push(format!(
                "`{OUTPUT}` is written: an adapter of the token embedding does not change the output projection"
            ));
        }
        for item in &mut planned.job.items {
            let name = item.tensor.name.clone();
            let Some(sum) = self.sums.get(name.as_str()) else { continue };
            let stored = item.tensor.stored_type;
            if stored.is_quantized() && !options.allow_requantize {
                let what = format!("`{name}` of the base model is quantized as {stored}");
                let help =
                    "merge into an F16 or F32 file, or allow the loss with --allow-requantize";
                return Err(Error::request("requantize", what, help));
            }
            let at = Stored { source: sum.clone(), offset: 0 };
            item.tensor = Tensor::stored(name, item.tensor.shape, TensorType::F32, at);
        }
        let merged = Array::from_strings(&self.descriptions);
        planned.job.metadata.set(MERGED, merged);
        Ok(planned)
    }
}

/// Whether a model without an output projection uses its token embedding instead.
///
/// # Errors
/// `adapter-unsupported` if it does, and its architecture has no tensor for an output projection.
fn is_tied(metadata: &Metadata) -> Result<bool, Error> {
    let name = metadata.architecture().unwrap_or_default();
    let is_output = |expected: &Expected| matches!(expected, Expected::Tensor { name, presence: Presence::Optional, .. } if name == OUTPUT);
    let in_layer = |expected: &Expected| matches!(expected, Expected::Tensor { name, .. } if name.starts_with("blk."));
    if let Some(described) = schema::architecture(name)
        && described.tensors(metadata).take_while(|e| !in_layer(e)).any(|e| is_output(&e))
    {
        return Ok(true);
    }
    let is_encoder = metadata.get(&format!("{name}.pooling_type")).is_some()
        || metadata.bool(&format!("{name}.attention.causal")) == Some(false);
    if is_encoder {
        return Ok(false);
    }
    let what = format!(
        "the adapter changes `{EMBEDDING}`, which is also the output projection of the base model; the \
         architecture {name} has no tensor for an output projection of its own"
    );
    Err(Error::request("adapter-unsupported", what, "apply the adapter with --lora instead"))
}

/// Tensor of the base model with the changes of adapters, computed in F32 when it is read.
struct Sum {
    base: Tensor,
    change: Change,
}

/// Returns the decoded elements of some rows.
fn rows_of(tensor: &Tensor, rows: Range<u64>) -> Result<Vec<f32>, Error> {
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
        self.base.rows() * self.base.shape.row_len() * size_of::<f32>() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let row_bytes = self.base.shape.row_len() * size_of::<f32>() as u64;
        let end = offset + buffer.len() as u64;
        let rows = offset / row_bytes..end.div_ceil(row_bytes);
        let first = rows.start;
        let mut values = rows_of(&self.base, rows)?;
        self.change.apply(&mut values, first as usize);
        // Readers never read part of an element.
        let skipped = (offset - first * row_bytes) as usize / size_of::<f32>();
        for (out, value) in buffer.chunks_exact_mut(size_of::<f32>()).zip(&values[skipped..]) {
            out.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}
