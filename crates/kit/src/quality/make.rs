//! A mix in memory.

use std::collections::HashMap;
use std::sync::Arc;

use gguf::Error;
use gguf_calibrate::Calibrated;
use gguf_pipeline::{Item, Job};
use gguf_runtime::Executor;
use gguf_store::Progress;

use super::report::TensorError;
use crate::calibration::Ready;
use crate::scratch;

/// Elements of a tensor whose errors are looked at, at most: rows spread evenly over it.
const SAMPLE: u64 = 512 * 1024;

/// The original with the types of a job, and how far the weights are off.
///
/// # Errors
/// If a tensor cannot be read or encoded, and when `progress` ends the work.
pub(super) fn made(
    original: &Arc<Executor>,
    job: &Job,
    ready: Option<&Ready>,
    progress: &dyn Progress,
) -> Result<(Arc<Executor>, Vec<TensorError>), Error> {
    if let Some(ready) = ready {
        return calibrated(original, ready, job, progress);
    }
    let is_used = |name: &str| original.graph().raw().weights.iter().any(|w| w.name == name);
    let (mut executor, mut errors) = (original.clone(), Vec::new());
    for item in &job.items {
        let (name, ty) = (&item.tensor.name, item.target);
        if ty == item.tensor.stored_type {
            continue;
        }
        let bytes = item.encoded(ty, progress)?;
        let error = error(item, &bytes)?;
        errors.push(TensorError { name: name.clone(), tensor_type: ty.to_string(), error });
        if is_used(name) {
            executor = Arc::new(executor.with_tensor(name, ty, bytes)?);
        }
    }
    Ok((executor, errors))
}

/// The same, with weights rounded by what a text shows.
fn calibrated(
    original: &Arc<Executor>,
    ready: &Ready,
    job: &Job,
    progress: &dyn Progress,
) -> Result<(Arc<Executor>, Vec<TensorError>), Error> {
    let scratch = scratch::directory()?;
    let changed = |item: &&Item| item.target != item.tensor.stored_type;
    let items: Vec<&Item> = job.items.iter().filter(changed).collect();
    let mut of_matrices = HashMap::new();
    let mut executor = original.clone();
    let mut each = |made: Calibrated| {
        if let Some(item) = items.iter().find(|item| item.tensor.name == made.name) {
            of_matrices.insert(made.name.clone(), error(item, &made.bytes)?);
            executor = Arc::new(executor.with_tensor(&made.name, item.target, made.bytes)?);
        }
        Ok(())
    };
    let nothing = &|_: &str| Ok(None);
    ready.calibrate(&items, scratch.path(), nothing, &mut each, progress)?;
    let is_used = |name: &str| original.graph().raw().weights.iter().any(|w| w.name == name);
    let mut errors = Vec::with_capacity(items.len());
    for item in items {
        let (name, ty) = (&item.tensor.name, item.target);
        let error = match of_matrices.get(name) {
            Some(error) => *error,
            None => {
                let bytes = item.encoded(ty, progress)?;
                let error = error(item, &bytes)?;
                if is_used(name) {
                    executor = Arc::new(executor.with_tensor(name, ty, bytes)?);
                }
                error
            }
        };
        errors.push(TensorError { name: name.clone(), tensor_type: ty.to_string(), error });
    }
    Ok((executor, errors))
}

/// The root of the sum of squared differences to that of squared weights; 0 of nothing.
fn error(item: &Item, encoded: &[u8]) -> Result<f64, Error> {
    let tensor = &item.tensor;
    let (row_len, rows) = (tensor.shape.row_len(), tensor.rows());
    let wanted = SAMPLE.checked_div(row_len).unwrap_or(0).clamp(1, rows.max(1)).min(rows);
    let row_bytes = encoded.len() / (rows as usize).max(1);
    let failed = |fault: gguf_quant::CodecError| Error::weights(&tensor.name, fault.to_string());
    let mut stored = Vec::new();
    let mut before = vec![0.0f32; row_len as usize];
    let mut after = before.clone();
    let (mut differences, mut squares) = (0.0, 0.0);
    for i in 0..wanted {
        let row = (u128::from(i) * u128::from(rows) / u128::from(wanted)) as u64;
        tensor.read_rows(row, 1, &mut stored)?;
        gguf_quant::decode_row(tensor.stored_type, &stored, &mut before).map_err(failed)?;
        let of_row = &encoded[row as usize * row_bytes..][..row_bytes];
        gguf_quant::decode_row(item.target, of_row, &mut after).map_err(failed)?;
        for (a, b) in before.iter().zip(&after) {
            let (a, b) = (f64::from(*a), f64::from(*b));
            differences += (a - b) * (a - b);
            squares += a * a;
        }
    }
    Ok(if squares > 0.0 { (differences / squares).sqrt() } else { 0.0 })
}
