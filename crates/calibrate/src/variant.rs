//! Variants of the reference model with the tensor types of a job, in memory.

use std::collections::HashMap;
use std::sync::Arc;

use gguf::{Bytes, Error};
use gguf_eval::quality::TensorError;
use gguf_pipeline::{Item, Job};
use gguf_runtime::Executor;
use gguf_store::{Progress, scratch};

use crate::job::Calibrator;
use crate::tensor_encoder::CalibratedTensor;

/// Maximum number of elements of a tensor whose error is computed, in evenly spread rows.
const MAX_SAMPLE: u64 = 512 * 1024;

/// Returns the reference model with the types of a job, and the weight error of each changed tensor.
///
/// # Errors
/// If a tensor cannot be read or encoded, or `progress` stopped the work.
pub fn variant(
    reference: &Arc<Executor>,
    job: &Job,
    calibrator: Option<&Calibrator>,
    progress: &dyn Progress,
) -> Result<(Arc<Executor>, Vec<TensorError>), Error> {
    let items = job.items.iter().filter(|item| item.target != item.tensor.stored_type);
    let items: Vec<&Item> = items.collect();
    let mut calibrated = HashMap::new();
    let mut executor = reference.clone();
    if let Some(calibrator) = calibrator {
        let scratch = scratch::directory()?;
        let mut on_tensor = |CalibratedTensor { name, bytes, .. }: CalibratedTensor| {
            let bytes = Bytes::from(bytes);
            if let Some(item) = items.iter().find(|item| item.tensor.name == name) {
                executor = Arc::new(executor.with_tensor(&name, item.target, bytes.clone())?);
                calibrated.insert(name, relative_rms_error(item, &bytes)?);
            }
            Ok(bytes)
        };
        calibrator.calibrate(&items, scratch.path(), &|_| Ok(None), &mut on_tensor, progress)?;
    }
    let is_used = |name: &str| reference.graph().raw().weights.iter().any(|w| w.name == name);
    let mut errors = Vec::with_capacity(items.len());
    for item in items {
        let (name, ty) = (&item.tensor.name, item.target);
        let error = match calibrated.get(name) {
            Some(error) => *error,
            None => {
                let bytes = item.encoded(ty, progress)?;
                let error = relative_rms_error(item, &bytes)?;
                if is_used(name) {
                    executor = Arc::new(executor.with_tensor(name, ty, bytes.into())?);
                }
                error
            }
        };
        errors.push(TensorError { name: name.clone(), tensor_type: ty.to_string(), error });
    }
    Ok((executor, errors))
}

/// Returns the relative RMS error of a sample of rows; 0 if all weights are 0.
fn relative_rms_error(item: &Item, encoded: &[u8]) -> Result<f64, Error> {
    let tensor = &item.tensor;
    let (row_len, rows) = (tensor.shape.row_len(), tensor.rows());
    let sampled = MAX_SAMPLE.checked_div(row_len).unwrap_or(0).clamp(1, rows.max(1)).min(rows);
    let row_bytes = encoded.len() / (rows as usize).max(1);
    let failed = |fault: gguf_quant::CodecError| Error::weights(&tensor.name, fault.to_string());
    let mut stored = Vec::new();
    let mut before = vec![0.0f32; row_len as usize];
    let mut after = before.clone();
    let (mut differences, mut squares) = (0.0, 0.0);
    for i in 0..sampled {
        let row = (u128::from(i) * u128::from(rows) / u128::from(sampled)) as u64;
        tensor.read_rows(row, 1, &mut stored)?;
        gguf_quant::decode_row(tensor.stored_type, &stored, &mut before).map_err(failed)?;
        let encoded_row = &encoded[row as usize * row_bytes..][..row_bytes];
        gguf_quant::decode_row(item.target, encoded_row, &mut after).map_err(failed)?;
        for (a, b) in before.iter().zip(&after) {
            let (a, b) = (f64::from(*a), f64::from(*b));
            differences += (a - b) * (a - b);
            squares += a * a;
        }
    }
    Ok(if squares > 0.0 { (differences / squares).sqrt() } else { 0.0 })
}
