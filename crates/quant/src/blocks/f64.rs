//! F64: IEEE 754 double precision, `x[i]` at byte 8*i; decoding rounds to nearest, ties to even.

use gguf::TensorType;
use pulp::{Simd, WithSimd};

use crate::codec::{BadBlock, Codec};
use crate::dispatch::InstructionSet;

pub(super) const CODEC: Codec = Codec::plain(TensorType::F64, decode, encode, find_bad);

fn decode(instructions: InstructionSet, bytes: &[u8], out: &mut [f32]) {
    instructions.run(Decode { bytes, out });
}

/// Decoder for any instruction set.
struct Decode<'a> {
    bytes: &'a [u8],
    out: &'a mut [f32],
}

impl WithSimd for Decode<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (bytes, x) in self.bytes.as_chunks().0.iter().zip(self.out) {
            *x = f64::from_le_bytes(*bytes) as f32;
        }
    }
}

fn encode(_: InstructionSet, row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    for (x, bytes) in row.iter().zip(out.as_chunks_mut().0) {
        *bytes = f64::from(*x).to_le_bytes();
    }
}

/// Like llama.cpp's check, this examines the numbers after rounding to f32: numbers outside its
/// range are infinite.
fn find_bad(bytes: &[u8]) -> Option<BadBlock> {
    let mut values = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32).enumerate();
    values.find(|(_, x)| !x.is_finite()).map(|(i, x)| BadBlock::value(i, x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_and_overflows_as_f32() {
        let numbers = [1.0 + 2f64.powi(-24), 1.0 + 3.0 * 2f64.powi(-24), 1e300];
        let bytes = numbers.map(f64::to_le_bytes);
        let mut out = [0.0; 3];
        decode(InstructionSet::widest(), bytes.as_flattened(), &mut out);
        assert_eq!(out, [1.0, 1.0 + 2f32.powi(-22), f32::INFINITY]);
        assert_eq!(find_bad(bytes.as_flattened()), Some(BadBlock::value(2, f32::INFINITY)));
        let mut back = [0; 24];
        encode(InstructionSet::widest(), &out, None, &mut back);
        assert_eq!(back[..8], 1f64.to_le_bytes());
    }
}
