//! Calibration of a whole model, matrix by matrix in the order of the graph.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gguf::{Bytes, Error, TensorType};
use gguf_graph::RawGraph;
use gguf_pipeline::Item;
use gguf_runtime::Executor;
use gguf_store::Progress;

use crate::hessian::Hessian;
use crate::paired_run::{PairedRun, StageStatistics};
use crate::stage::{matmul_weights, stages};
use crate::tensor_encoder::{CalibratedTensor, Damping, Encoders};

/// CalibrateOptions of [`calibrate`].
#[derive(Clone, Copy, Debug)]
pub struct CalibrateOptions {
    /// Damping of the Hessians.
    pub damping: Damping,
    /// Number of tokens, per column of the narrowest matrix, that the original model also reads.
    /// With more tokens the estimate of the accumulated quantization error hardly improves.
    pub compared: usize,
}

impl Default for CalibrateOptions {
    fn default() -> Self {
        Self { damping: Damping::default(), compared: 64 }
    }
}

/// Whether calibration encodes the item: it changes its type to a block type, and the graph
/// multiplies with it.
pub fn is_calibrated(raw: &RawGraph, item: &Item) -> bool {
    item.tensor.shape.len() >= 2
        && item.target != item.tensor.stored_type
        && gguf_quant::has_quant_grid(item.target)
        && matmul_weights(raw).contains(&item.tensor.name.as_str())
}

/// Returns the bytes of a tensor that an earlier run encoded.
pub type FindEncoded<'m> = dyn Fn(&str) -> Result<Option<Bytes>, Error> + 'm;

/// Receives the encoded tensors, one after the other, and returns the bytes of each for the quantized model: for example those
/// of a mapped file, which need no memory.
pub type OnTensor<'e> = dyn FnMut(CalibratedTensor) -> Result<Bytes, Error> + 'e;

/// Receives the names of tensors that share an input, and the Hessian of each of their matrices.
pub type OnHessians<'e> = dyn FnMut(&[String], &[Hessian]) -> Result<(), Error> + 'e;

/// Encodes the matrices of a model one after the other with GPTQ and passes each to `each`, except
/// those that `find_encoded` returns. `items` are all tensors that change their type; those that are not
/// calibrated are encoded without error propagation and are not passed to `each`. `chunks` are the
/// chunks of calibration text as token ids. Activations are stored in an unnamed file in
/// `directory`.
///
/// # Errors
/// Returns `weights-unusable` if the input of a matrix contains NaN, the error of reading or
/// encoding a tensor, the errors of `find_encoded` and `each`, and those of [`gguf_runtime::Context::run`].
#[expect(clippy::too_many_arguments, reason = "inputs, outputs and callbacks of one job")]
pub fn calibrate(
    original: &Arc<Executor>,
    items: &[&Item],
    chunks: &[Vec<u32>],
    options: CalibrateOptions,
    directory: &Path,
    find_encoded: &FindEncoded<'_>,
    each: &mut OnTensor<'_>,
    progress: &dyn Progress,
) -> Result<Arc<Executor>, Error> {
    let by_name: HashMap<&str, &Item> =
        items.iter().map(|item| (item.tensor.name.as_str(), *item)).collect();
    let raw = original.graph().raw();
    let is_selected = |name: &str| by_name.get(name).is_some_and(|item| is_calibrated(raw, item));
    let all = stages(raw, is_selected);
    let mut quantized = original.clone();
    for item in items {
        let name = &item.tensor.name;
        let is_used = raw.weights.iter().any(|weight| weight.name == *name);
        if is_used && !all.iter().any(|stage| stage.tensors.contains(name)) {
            let bytes = item.encoded(item.target, progress)?.into();
            quantized = Arc::new(quantized.with_tensor(name, item.target, bytes)?);
        }
    }
    let names = all.iter().flat_map(|stage| &stage.tensors);
    let widths = names.map(|name| by_name[name.as_str()].tensor.shape.row_len() as usize);
    let compared = options.compared.saturating_mul(widths.min().unwrap_or(0));
    let mut walk = PairedRun::new(original, chunks, compared, directory)?;
    let mut encoders = Encoders::default();
    let mut previous = Vec::new();
    for stage in &all {
        let items: Vec<&Item> = stage.tensors.iter().map(|name| by_name[name.as_str()]).collect();
        let mut rest = Vec::new();
        for item in &items {
            let name = &item.tensor.name;
            match find_encoded(name)? {
                Some(bytes) => {
                    quantized = Arc::new(quantized.with_tensor(name, item.target, bytes)?);
                }
                None => rest.push(*item),
            }
        }
        // The run up to this stage multiplies with the matrices of the previous one, its statistics with those of this one.
        let current = fast_matrices(&items, progress)?;
        let mut fast = original.clone();
        for (name, bytes) in previous.iter().chain(&current) {
            fast = Arc::new(fast.with_tensor(name, TensorType::Q8_0, bytes.clone())?);
        }
        walk.set_original(fast);
        previous = current;
        if rest.is_empty() {
            // Activations are rounded at each stage, so a resumed run stops at the same ones.
            walk.skip_stage(stage, &quantized, progress)?;
            continue;
        }
        let StageStatistics { hessians, output_error } =
            walk.collect_stage(stage, &quantized, progress)?;
        for tensor in encoders.encode(&rest, hessians, output_error, options.damping, progress)? {
            let ty = by_name[tensor.name.as_str()].target;
            let name = tensor.name.clone();
            quantized = Arc::new(quantized.with_tensor(&name, ty, each(tensor)?)?);
        }
    }
    Ok(quantized)
}

/// Returns the names and the bytes of matrices in Q8_0, whose products take a fraction of the time of those in F16. The error
/// of Q8_0 is small beside that of types with less than 6 bits per weight; matrices of other types are left out.
fn fast_matrices(items: &[&Item], progress: &dyn Progress) -> Result<Vec<(String, Bytes)>, Error> {
    let mut fast = Vec::new();
    for item in items {
        let size = |ty: TensorType| ty.byte_len(&item.tensor.shape);
        let sizes = (size(item.target), size(TensorType::Q8_0), size(item.tensor.stored_type));
        let (Some(target), Some(fast_size), Some(stored)) = sizes else { continue };
        // Q8_0 has 8.5 bits per weight.
        let is_coarse = 8.5 * (target as f64) < 6.0 * fast_size as f64;
        if is_coarse && fast_size < stored {
            let bytes = item.encoded(TensorType::Q8_0, progress)?;
            fast.push((item.tensor.name.clone(), bytes.into()));
        }
    }
    Ok(fast)
}

/// Accumulates the Hessian of every matrix of the unmodified model over `chunks`, and passes the
/// names of tensors that share an input with their Hessians to `each`.
///
/// # Errors
/// See [`calibrate`].
pub fn collect_hessians(
    original: &Arc<Executor>,
    chunks: &[Vec<u32>],
    directory: &Path,
    each: &mut OnHessians<'_>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut walk = PairedRun::new(original, chunks, 0, directory)?;
    for stage in stages(original.graph().raw(), |_| true) {
        let seen = walk.collect_stage(&stage, original, progress)?;
        each(&stage.tensors, &seen.hessians)?;
    }
    Ok(())
}
