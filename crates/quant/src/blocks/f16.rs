//! F16: IEEE 754 half precision, `x[i]` at byte 2*i; rounded to nearest, ties to even.

use gguf::TensorType;
use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::codec::{BadBlock, Codec};
use crate::dispatch::InstructionSet;

pub(super) const CODEC: Codec = Codec::plain(TensorType::F16, decode, encode, find_bad);

/// Numbers converted at once: `half` looks up the processor's abilities once per call.
const CHUNK: usize = 256;

fn decode(_: InstructionSet, bytes: &[u8], out: &mut [f32]) {
    let mut halves = [f16::ZERO; CHUNK];
    for (bytes, out) in bytes.chunks(2 * CHUNK).zip(out.chunks_mut(CHUNK)) {
        for (bytes, h) in bytes.as_chunks().0.iter().zip(&mut halves) {
            *h = f16::from_le_bytes(*bytes);
        }
        halves[..out.len()].convert_to_f32_slice(out);
    }
}

fn encode(_: InstructionSet, row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    let mut halves = [f16::ZERO; CHUNK];
    for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(2 * CHUNK)) {
        halves[..row.len()].convert_from_f32_slice(row);
        for (h, bytes) in halves.iter().zip(out.as_chunks_mut().0) {
            *bytes = h.to_le_bytes();
        }
    }
}

fn find_bad(bytes: &[u8]) -> Option<BadBlock> {
    let mut values = bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b)).enumerate();
    values.find(|(_, x)| !x.is_finite()).map(|(i, x)| BadBlock::value(i, x.to_f32()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_even_and_keeps_what_is_not_finite() {
        let cases: [(f32, u16); 9] = [
            (1.0, 0x3c00),
            (1.0 + 1.0 / 2048.0, 0x3c00),
            (1.0 + 3.0 / 2048.0, 0x3c02),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (6.0e-8, 0x0001),
            (2.0f32.powi(-25), 0x0000),
            (-0.0, 0x8000),
            (f32::NEG_INFINITY, 0xfc00),
        ];
        let mut bytes = [0; 18];
        encode(InstructionSet::widest(), &cases.map(|c| c.0), None, &mut bytes);
        let halves = bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b));
        assert!(halves.eq(cases.map(|c| c.1)));
        assert_eq!(find_bad(&bytes), Some(BadBlock::value(4, f32::INFINITY)));
        let mut nan = [0; 2];
        encode(InstructionSet::widest(), &[f32::NAN], None, &mut nan);
        assert_eq!(u16::from_le_bytes(nan), 0x7e00);
    }

    #[test]
    fn rows_of_any_length() {
        let row: Vec<f32> = (0..CHUNK + 3).map(|i| i as f32).collect();
        let mut bytes = vec![0; 2 * row.len()];
        encode(InstructionSet::widest(), &row, None, &mut bytes);
        let mut back = vec![0.0; row.len()];
        decode(InstructionSet::widest(), &bytes, &mut back);
        assert_eq!(back, row);
    }
}
