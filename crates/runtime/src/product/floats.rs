//! Weights as floats, piece by piece.

use gguf::TensorType;
use gguf_quant::integers::half;

use crate::weight::Matrix;

/// Decodes the weights of a row from column `first` on, as many as `out` holds: whole blocks.
/// Plain floats are decoded right here, where the caller's instruction set is used.
#[inline(always)]
pub(super) fn decode(matrix: &Matrix, row: usize, first: usize, out: &mut [f32]) {
    let bytes = matrix.rows(row, 1);
    match matrix.codec.tensor_type() {
        TensorType::F32 => each(bytes, 4 * first, out, f32::from_le_bytes),
        TensorType::BF16 => {
            let single = |bytes| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16);
            each(bytes, 2 * first, out, single);
        }
        TensorType::F16 => each(bytes, 2 * first, out, |bytes| half(u16::from_le_bytes(bytes))),
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

/// Decodes numbers of `N` bytes from a byte on.
#[inline(always)]
fn each<const N: usize>(bytes: &[u8], start: usize, out: &mut [f32], of: impl Fn([u8; N]) -> f32) {
    let bytes = bytes.get(start..).unwrap_or_default().as_chunks::<N>().0;
    let bytes = &bytes[..bytes.len().min(out.len())];
    let (whole, rest) = out.as_chunks_mut::<16>();
    let (bytes, rest_bytes) = bytes.as_chunks::<16>();
    for (out, bytes) in whole.iter_mut().zip(bytes) {
        for i in 0..16 {
            out[i] = of(bytes[i]);
        }
    }
    for (out, bytes) in rest.iter_mut().zip(rest_bytes) {
        *out = of(*bytes);
    }
}

/// Columns of a piece: whole blocks of every type.
pub(super) fn piece(matrix: &Matrix, about: usize) -> usize {
    (about / matrix.block_len).max(1) * matrix.block_len
}
