//! A mix in memory.

use std::sync::Arc;

use gguf::Error;
use gguf_pipeline::{Item, Job};
use gguf_runtime::Executor;
use gguf_store::Progress;

use super::report::TensorError;

/// Elements of a tensor whose errors are looked at, at most: rows spread evenly over it.
const SAMPLE: u64 = 512 * 1024;

/// The original with the types of a job, and how far the weights are off.
///
/// # Errors
/// If a tensor cannot be read or encoded, and when `progress` ends the work.
pub(super) fn made(
    original: &Arc<Executor>,
    job: &Job,
    progress: &dyn Progress,
) -> Result<(Arc<Executor>, Vec<TensorError>), Error> {
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
