//! How far weights are from those that they were made of.

use gguf::{Error, TensorType};
use gguf_pipeline::{Tensor, parallel};
use gguf_store::{Model, ModelTensor, Progress};

use super::report::TensorError;

/// Elements of a tensor that are looked at, at most: rows spread evenly over it.
const SAMPLE: u64 = 512 * 1024;

/// The error of each tensor of `made` that has another type than in `original`.
///
/// # Errors
/// If a tensor cannot be read or decoded, and when `progress` ends the work.
pub(super) fn errors(
    original: &Model,
    made: &Model,
    progress: &dyn Progress,
) -> Result<Vec<TensorError>, Error> {
    let index = original.index();
    let changed: Vec<(&ModelTensor, &ModelTensor)> = made
        .tensors()
        .iter()
        .filter_map(|tensor| Some((*index.get(&*tensor.info.name)?, tensor)))
        .filter(|(before, after)| before.info.tensor_type != after.info.tensor_type)
        .collect();
    parallel::map(changed.len(), |i| {
        let (before, after) = changed[i];
        progress.step(0)?;
        Ok(TensorError {
            name: after.info.name.to_string(),
            tensor_type: after.info.tensor_type.to_string(),
            error: error(&Tensor::of_model(before), &Tensor::of_model(after))?,
        })
    })
}

/// The root of the sum of squared differences to that of squared weights; 0 of nothing.
fn error(before: &Tensor, after: &Tensor) -> Result<f64, Error> {
    let (row_len, rows) = (before.shape.row_len(), before.rows());
    let wanted = SAMPLE.checked_div(row_len).unwrap_or(0).clamp(1, rows.max(1)).min(rows);
    let mut stored = Vec::new();
    let mut decoded = [vec![0.0f32; row_len as usize], vec![0.0f32; row_len as usize]];
    let (mut differences, mut squares) = (0.0, 0.0);
    for i in 0..wanted {
        let row = (u128::from(i) * u128::from(rows) / u128::from(wanted)) as u64;
        for (tensor, out) in [before, after].into_iter().zip(&mut decoded) {
            tensor.read_rows(row, 1, &mut stored)?;
            decode(tensor, tensor.stored_type, &stored, out)?;
        }
        for (a, b) in decoded[0].iter().zip(&decoded[1]) {
            let (a, b) = (f64::from(*a), f64::from(*b));
            differences += (a - b) * (a - b);
            squares += a * a;
        }
    }
    Ok(if squares > 0.0 { (differences / squares).sqrt() } else { 0.0 })
}

fn decode(tensor: &Tensor, ty: TensorType, bytes: &[u8], out: &mut [f32]) -> Result<(), Error> {
    gguf_quant::decode_row(ty, bytes, out)
        .map_err(|fault| Error::weights(&tensor.name, fault.to_string()))
}
