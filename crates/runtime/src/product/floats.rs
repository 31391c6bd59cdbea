//! Weights as floats, piece by piece.

use gguf::TensorType;

use crate::weight::Matrix;

/// Decodes the weights of a row from column `first` on, as many as `out` holds: whole blocks.
/// Plain floats are decoded right here, where the caller's instruction set is used.
#[inline(always)]
pub(super) fn decode(matrix: &Matrix, row: usize, first: usize, out: &mut [f32]) {
    let bytes = matrix.rows(row, 1);
    match matrix.codec.tensor_type() {
        TensorType::F32 => {
            let bytes = bytes.get(4 * first..).unwrap_or_default();
            for (x, bytes) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *x = f32::from_le_bytes(*bytes);
            }
        }
        TensorType::BF16 => {
            let bytes = bytes.get(2 * first..).unwrap_or_default();
            for (x, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *x = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
            }
        }
        TensorType::F16 => {
            let bytes = bytes.get(2 * first..).unwrap_or_default();
            for (x, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *x = gguf_quant::integers::half(u16::from_le_bytes(*bytes));
            }
        }
        _ => {
            let of_row = matrix.row_bytes / (matrix.row_len / matrix.block_len);
            let start = first / matrix.block_len * of_row;
            let len = out.len() / matrix.block_len * of_row;
            let decoded =
                matrix.codec.decode_row(bytes.get(start..start + len).unwrap_or_default(), out);
            debug_assert!(decoded.is_ok(), "{}", matrix.name);
        }
    }
}

/// Columns of a piece: whole blocks of every type.
pub(super) fn piece(matrix: &Matrix, about: usize) -> usize {
    (about / matrix.block_len).max(1) * matrix.block_len
}
