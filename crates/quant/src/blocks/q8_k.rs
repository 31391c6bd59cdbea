//! Q8_K: 8 bits each and one f32 scale for 256 weights, and the sums of each 16, 9.125 bits per
//! weight. llama.cpp's runtime quantizes activations to it; files do not contain it.
//!
//! ```text
//! d[4]  qs[256]  bsums[32]      qs[j]: x[j], signed
//!
//! bsums[2*g], [2*g + 1]:        the sum of q of x[16*g] to x[16*g + 15], i16; not needed to decode
//!
//! x = d * q                     d: f32, of either sign: the weight of largest magnitude gets -127
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Importance, part, put};
use crate::layout::Place::Every;
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::search;

pub(super) struct Q8K;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * q",
    fields: &[
        Field::one(
            "d",
            "scale of the block",
            FieldKind::F32,
            &[Every { first: 0, len: 32, step: 0 }],
        ),
        Field {
            name: "q",
            about: "quantized value of a weight",
            kind: FieldKind::Signed,
            count: 256,
            bits: &[Every { first: 32, len: 8, step: 8 }],
            of: Some(|w| w),
        },
        Field {
            name: "bsums",
            about: "sum of q of 16 weights, not needed to decode",
            kind: FieldKind::Signed,
            count: 16,
            bits: &[Every { first: 2080, len: 16, step: 16 }],
            of: None,
        },
    ],
    weight: |of| of.value(0) * of.value(1),
};

impl Block<256, 292> for Q8K {
    const TYPE: TensorType = TensorType::Q8_K;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 292], out: &mut [f32; 256]) {
        let d = f32::from_le_bytes(*part::<0, 4, _>(block));
        for (x, &q) in out.iter_mut().zip(part::<4, 256, _>(block)) {
            *x = d * f32::from(q as i8);
        }
    }

    /// An all-zero block gets zero sums; llama.cpp's encoder leaves them uninitialized.
    #[inline(always)]
    fn encode<S: Simd>(_: S, x: &[f32; 256], _: Option<Importance<256>>) -> [u8; 292] {
        let mut block = [0; 292];
        let extreme = search::extreme(x);
        if extreme == 0.0 {
            return block;
        }
        let inverse = -127.0 / extreme;
        // Through i8, as in C: matters if `inverse` overflowed.
        let mut q = [0i8; 256];
        for (q, x) in q.iter_mut().zip(x) {
            *q = search::nearest(inverse * x).min(127) as i8;
        }
        put::<0, 4, _>(&mut block, (1.0 / inverse).to_le_bytes());
        put::<4, 256, _>(&mut block, q.map(|q| q as u8));
        let mut sums = [0; 32];
        for (sum, q) in sums.as_chunks_mut().0.iter_mut().zip(q.as_chunks::<16>().0) {
            *sum = q.iter().map(|&q| i16::from(q)).sum::<i16>().to_le_bytes();
        }
        put::<260, 32, _>(&mut block, sums);
        block
    }

    fn bad_scale(block: &[u8; 292]) -> Option<(&'static str, f32)> {
        let d = f32::from_le_bytes(*part::<0, 4, _>(block));
        (!d.is_finite()).then_some(("d", d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 256];
        (x[1], x[17], x[18]) = (-127.0, 3.0, -5.0);
        let mut expected = [0; 292];
        expected[..4].copy_from_slice(&1.0f32.to_le_bytes());
        (expected[5], expected[21], expected[22]) = (0x81, 0x03, 0xfb);
        expected[260..264].copy_from_slice(&[0x81, 0xff, 0xfe, 0xff]);
        assert_eq!(Q8K::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 256];
        Q8K::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }
}
