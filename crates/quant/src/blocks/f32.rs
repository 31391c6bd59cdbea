//! F32: IEEE 754 single precision, `x[i]` at byte 4*i.

use gguf::TensorType;

use crate::codec::{BadBlock, Codec};
use crate::dispatch::InstructionSet;
use crate::finite;

pub(super) const CODEC: Codec = Codec::plain(TensorType::F32, decode, encode, find_bad);

fn decode(_: InstructionSet, bytes: &[u8], out: &mut [f32]) {
    for (bytes, x) in bytes.as_chunks().0.iter().zip(out) {
        *x = f32::from_le_bytes(*bytes);
    }
}

fn encode(_: InstructionSet, row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    for (x, bytes) in row.iter().zip(out.as_chunks_mut().0) {
        *bytes = x.to_le_bytes();
    }
}

fn find_bad(bytes: &[u8]) -> Option<BadBlock> {
    let numbers = bytes.as_chunks().0;
    let words = numbers.iter().map(|x| u32::from_le_bytes(*x) << 1);
    let position = finite::first(InstructionSet::widest(), finite::INFINITY, words)?;
    Some(BadBlock::value(position, f32::from_le_bytes(numbers[position])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_preserved() {
        let mut bytes = [0; 8];
        encode(InstructionSet::widest(), &[-0.0, f32::from_bits(0x7fa0_1234)], None, &mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0x80, 0x34, 0x12, 0xa0, 0x7f]);
        let mut out = [1.0; 2];
        decode(InstructionSet::widest(), &bytes, &mut out);
        assert_eq!(out.map(f32::to_bits), [0x8000_0000, 0x7fa0_1234]);
        assert_eq!(find_bad(&bytes).map(|b| b.element), Some(1));
    }
}
