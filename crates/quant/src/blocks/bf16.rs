//! BF16: the upper half of an IEEE 754 single, `x[i]` at byte 2*i; rounded to nearest, ties to
//! even; NaN becomes quiet.

use gguf::TensorType;
use half::bf16;

use crate::codec::{BadBlock, Codec};
use crate::dispatch::InstructionSet;
use crate::finite;

pub(super) const CODEC: Codec = Codec::plain(TensorType::BF16, decode, encode, find_bad);

fn decode(_: InstructionSet, bytes: &[u8], out: &mut [f32]) {
    for (bytes, x) in bytes.as_chunks().0.iter().zip(out) {
        *x = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
    }
}

fn encode(_: InstructionSet, row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    for (&x, bytes) in row.iter().zip(out.as_chunks_mut().0) {
        *bytes = bf16::from_f32(x).to_le_bytes();
    }
}

fn find_bad(bytes: &[u8]) -> Option<BadBlock> {
    let numbers = bytes.as_chunks().0;
    let words = numbers.iter().map(|x| u32::from(u16::from_le_bytes(*x)) << 17);
    let position = finite::first(InstructionSet::widest(), finite::INFINITY, words)?;
    Some(BadBlock::value(position, bf16::from_le_bytes(numbers[position]).to_f32()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_even_and_keeps_nan_and_infinity() {
        let cases: [(u32, u16); 7] = [
            (0x3f80_0000, 0x3f80),
            (0x3f80_8000, 0x3f80),
            (0x3f81_8000, 0x3f82),
            (0x3f80_8001, 0x3f81),
            (0x0000_8001, 0x0001),
            (0x7f7f_ffff, 0x7f80),
            (0x7f80_0001, 0x7fc0),
        ];
        let mut bytes = [0; 14];
        encode(InstructionSet::widest(), &cases.map(|c| f32::from_bits(c.0)), None, &mut bytes);
        let upper = bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b));
        assert!(upper.eq(cases.map(|c| c.1)));
        assert_eq!(find_bad(&bytes).map(|b| b.element), Some(5));
    }
}
