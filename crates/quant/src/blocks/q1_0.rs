//! Q1_0: signs and one scale for 128 weights, 1.125 bits per weight.
//!
//! ```text
//! d[2]  qs[16]      qs[j]: | x[8*j + 7] | .. | x[8*j] |     1: positive or zero
//!                           7                        0
//!
//! x = d or -d       d: f16, the mean magnitude
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Importance, f16_at, first_bad, part, put};
use crate::bits;
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field};

pub(super) struct Q1_0;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d if q is 1, else -d",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field::levels(128, &[Packed { at: 2, len: 1, stride: 1 }]),
    ],
    weight: |of| if of.raw(1) == 1 { of.value(0) } else { -of.value(0) },
};

impl Block<128, 18> for Q1_0 {
    const TYPE: TensorType = TensorType::Q1_0;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 18], out: &mut [f32; 128]) {
        let d = f16_at::<0, _>(block);
        let q = bits::unpack::<1, 1, _, 128>(part::<2, 16, _>(block));
        for (x, q) in out.iter_mut().zip(q) {
            *x = if q == 1 { d } else { -d };
        }
    }

    /// Like llama.cpp's encoder, ignores importance weights.
    #[inline(always)]
    fn encode<S: Simd>(_: S, x: &[f32; 128], _: Option<Importance<128>>) -> [u8; 18] {
        let d = x.iter().fold(0.0, |sum, x| sum + x.abs()) / 128.0;
        let mut block = [0; 18];
        put::<0, 2, _>(&mut block, f16::from_f32(d).to_le_bytes());
        put::<2, 16, _>(&mut block, bits::pack::<1, 1, _, _>(&x.map(|x| (x >= 0.0) as u8), 0));
        block
    }

    fn bad_scale(block: &[u8; 18]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [-2.0; 128];
        (x[1], x[127]) = (2.0, 2.0);
        let mut expected = [0; 18];
        (expected[1], expected[2], expected[17]) = (0x40, 0b10, 0x80);
        assert_eq!(Q1_0::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 128];
        Q1_0::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }
}
