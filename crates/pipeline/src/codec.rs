//! Encoding and decoding of arrays on all threads.

use gguf::{Error, TensorType};
use gguf_quant::{Codec, CodecError};
use gguf_store::Progress;
use rayon::prelude::*;

use crate::parallel;

/// Approximate number of elements of a chunk of work.
const CHUNK: usize = 128 * 1024;

/// Returns the error for an array that cannot be encoded or decoded.
fn refused(fault: &CodecError) -> Error {
    Error::request("array-refused", fault.to_string(), "")
}

fn codec(ty: TensorType) -> Result<&'static Codec, Error> {
    gguf_quant::codec(ty).ok_or_else(|| refused(&CodecError::NoCodec(ty)))
}

/// Encodes rows of `row_len` values as `ty`, with the bytes that llama.cpp writes. `importance` has a weight for each
/// column, or for each column of each of several matrices of equal size (experts). `progress` counts values.
///
/// # Errors
/// `array-refused` if the lengths do not match, `row_len` is not a multiple of the block size, the type cannot represent
/// a value, or it needs importance; if `progress` stopped the work.
pub fn encode(
    ty: TensorType,
    values: &[f32],
    row_len: usize,
    importance: Option<&[f32]>,
    progress: &dyn Progress,
) -> Result<Vec<u8>, Error> {
    let codec = codec(ty)?;
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let rows = values.len().checked_div(row_len).unwrap_or(0);
    let blocks = |elements: usize| {
        let block_len = ty.block().map_or(0, |(len, _)| len);
        refused(&CodecError::NotWholeBlocks { ty, elements, block_len })
    };
    let row_bytes = ty.byte_len(&[row_len as u64]).ok_or_else(|| blocks(row_len))? as usize;
    if rows * row_len != values.len() {
        return Err(blocks(values.len()));
    }
    let matrices = importance.map_or(1, |importance| importance.len() / row_len);
    let whole = importance.is_none_or(|importance| importance.len() == matrices * row_len);
    if !whole || matrices == 0 || !rows.is_multiple_of(matrices) {
        let found = importance.map_or(0, <[f32]>::len);
        return Err(refused(&CodecError::WrongImportanceCount { elements: row_len, found }));
    }
    progress.begin("encoding", values.len() as u64);
    let rows_per_matrix = rows / matrices;
    let step = (CHUNK / row_len).clamp(1, rows_per_matrix);
    let per_matrix = rows_per_matrix.div_ceil(step);
    let chunks = parallel::map(matrices * per_matrix, |chunk| {
        let (matrix, first) = (chunk / per_matrix, chunk % per_matrix * step);
        let start = matrix * rows_per_matrix + first;
        let count = step.min(rows_per_matrix - first);
        let importance = importance.map(|all| &all[matrix * row_len..][..row_len]);
        let numbers = &values[start * row_len..][..count * row_len];
        let mut bytes = vec![0; count * row_bytes];
        codec.encode_rows(numbers, importance, &mut bytes).map_err(|fault| refused(&fault))?;
        progress.step(numbers.len() as u64)?;
        Ok(bytes)
    })?;
    Ok(chunks.concat())
}

/// Decodes `bytes` of `ty` to `out.len()` values. `progress` counts values.
///
/// # Errors
/// `array-refused` if the lengths do not match; if `progress` stopped the work.
pub fn decode(
    ty: TensorType,
    bytes: &[u8],
    out: &mut [f32],
    progress: &dyn Progress,
) -> Result<(), Error> {
    let codec = codec(ty)?;
    progress.begin("decoding", out.len() as u64);
    let (block_len, block_bytes) = ty.block().unwrap_or((1, 1));
    let blocks = (CHUNK / block_len as usize).max(1);
    let (step, step_bytes) = (blocks * block_len as usize, blocks * block_bytes as usize);
    if ty.byte_len(&[out.len() as u64]) != Some(bytes.len() as u64) {
        // The codec describes the fault.
        return codec.decode_row(bytes, out).map_err(|fault| refused(&fault));
    }
    let chunks = out.par_chunks_mut(step).zip(bytes.par_chunks(step_bytes));
    chunks.try_for_each(|(out, bytes)| {
        codec.decode_row(bytes, out).map_err(|fault| refused(&fault))?;
        progress.step(out.len() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes two matrices of three rows, each with its own importance.
    #[test]
    fn each_matrix_has_its_own_importance() {
        let values: Vec<f32> = (0..6 * 256).map(|i| (i as f32 * 0.37).sin()).collect();
        let importance: Vec<f32> = (0..512).map(|i| 0.1 + (i % 7) as f32).collect();
        let ty = TensorType::Q4_K;
        let found = encode(ty, &values, 256, Some(&importance), &()).unwrap();
        for (row, bytes) in found.chunks(144).enumerate() {
            let mut alone = [0; 144];
            let weights = &importance[row / 3 * 256..][..256];
            gguf_quant::encode_row(ty, &values[row * 256..][..256], Some(weights), &mut alone)
                .unwrap();
            assert_eq!(bytes, alone, "row {row}");
        }
        let mut decoded = vec![0.0; values.len()];
        decode(ty, &found, &mut decoded, &()).unwrap();
        assert!(values.iter().zip(&decoded).all(|(a, b)| (a - b).abs() < 0.15));
    }

    #[test]
    fn mismatched_arrays_are_rejected() {
        let refused =
            |result: Result<(), Error>| assert_eq!(result.unwrap_err().code(), "array-refused");
        let (row, ty) = ([1.0; 64], TensorType::Q8_0);
        refused(encode(ty, &row, 33, None, &()).map(drop));
        refused(encode(ty, &row[..33], 32, None, &()).map(drop));
        refused(encode(ty, &row, 0, None, &()).map(drop));
        refused(encode(ty, &row, 32, Some(&row[..31]), &()).map(drop));
        refused(encode(ty, &row, 32, Some(&[]), &()).map(drop));
        refused(encode(ty, &[f32::NAN; 32], 32, None, &()).map(drop));
        refused(encode(TensorType::IQ1_S, &[1.0; 256], 256, None, &()).map(drop));
        refused(encode(TensorType::from_id(4), &row, 32, None, &()).map(drop));
        refused(decode(ty, &[0; 33], &mut [0.0; 32], &()));
    }
}
