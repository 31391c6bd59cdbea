//! F16: IEEE 754 half precision, `x[i]` at byte 2*i; rounded to nearest, ties to even.

use gguf::TensorType;
use half::f16;
use half::slice::HalfFloatSliceExt;
use pulp::{Simd, WithSimd};

use crate::codec::{BadBlock, Codec};
use crate::dispatch::InstructionSet;
use crate::{finite, fp16};

pub(super) const CODEC: Codec = Codec::plain(TensorType::F16, decode, encode, find_bad);

/// Number of elements per conversion: `half` detects processor features once per call.
const CHUNK: usize = 256;

fn decode(instructions: InstructionSet, bytes: &[u8], out: &mut [f32]) {
    let decode = Decode { halves: bytes.as_chunks().0, out };
    #[cfg(target_arch = "x86_64")]
    if let pulp::Arch::V4(simd) = instructions.arch() {
        return simd.vectorize(avx512::Decode { simd, all: decode });
    }
    instructions.run(decode);
}

struct Decode<'a> {
    halves: &'a [[u8; 2]],
    out: &'a mut [f32],
}

impl WithSimd for Decode<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (half, x) in self.halves.iter().zip(self.out) {
            *x = fp16::to_f32(u16::from_le_bytes(*half));
        }
    }
}

/// AVX-512 decoder: many models are F16, and one instruction decodes 16 numbers.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use pulp::bytemuck::cast;
    use pulp::x86::V4;
    use pulp::{NullaryFnOnce, WithSimd};

    pub(super) struct Decode<'a> {
        pub simd: V4,
        pub all: super::Decode<'a>,
    }

    impl NullaryFnOnce for Decode<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self { simd, all: super::Decode { halves, out } } = self;
            let (chunks, halves) = halves.as_chunks::<16>();
            let (out_sixteens, out) = out.as_chunks_mut::<16>();
            for (halves, out) in chunks.iter().zip(out_sixteens) {
                *out = cast(simd.avx512f._mm512_cvtph_ps(cast(*halves)));
            }
            super::Decode { halves, out }.with_simd(simd);
        }
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
    let halves = bytes.as_chunks().0;
    let words = halves.iter().map(|half| u32::from(u16::from_le_bytes(*half)) << 17);
    let position = finite::first(InstructionSet::widest(), finite::INFINITY_F16, words)?;
    Some(BadBlock::value(position, f16::from_le_bytes(halves[position]).to_f32()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_even_and_keeps_nan_and_infinity() {
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
