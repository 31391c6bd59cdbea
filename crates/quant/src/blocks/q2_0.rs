//! Q2_0: 2 bits each and one scale for 64 weights, 2.25 bits per weight.
//!
//! ```text
//! d[2]  qs[16]      qs[j]: | x[4*j + 3] | x[4*j + 2] | x[4*j + 1] | x[4*j] |
//!                           7          6 5          4 3          2 1      0
//!
//! x = d * (q - 1)   d: f16, the largest magnitude, so that the encoder never needs q = 3
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Importance, f16_at, first_bad, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field};
use crate::{bits, lanes, search};

pub(super) struct Q2_0;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (q - 1)",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field::levels(64, &[Packed { at: 2, len: 2, stride: 1 }]),
    ],
    weight: |of| (of.value(1) - 1.0) * of.value(0),
};

impl Block<64, 18> for Q2_0 {
    const TYPE: TensorType = TensorType::Q2_0;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 18], out: &mut [f32; 64]) {
        let d = f16_at::<0, _>(block);
        let q = bits::unpack::<2, 1, _, 64>(part::<2, 16, _>(block));
        lanes::scale_levels(simd, &q, 1.0, d, out);
    }

    /// Like llama.cpp's encoder, ignores importance weights.
    #[inline(always)]
    fn encode<S: Simd>(_: S, x: &[f32; 64], _: Option<Importance<64>>) -> [u8; 18] {
        let d = search::magnitude(x);
        let inverse = search::inverse(d);
        // A scale too small for its reciprocal yields infinity and NaN: level 0, as the x86-64
        // conversion to int does after clamping.
        let level = |x: f32| {
            let q = x * inverse;
            if q.is_finite() { (search::round_half_away(q) + 1) as u8 } else { 0 }
        };
        let mut block = [0; 18];
        put::<0, 2, _>(&mut block, f16::from_f32(d).to_le_bytes());
        put::<2, 16, _>(&mut block, bits::pack::<2, 1, _, _>(&x.map(level), 0));
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
        let mut x = [0.0; 64];
        (x[0], x[1], x[63]) = (-1.0, 0.5, 0.25);
        let mut expected = [0b01_01_01_01; 18];
        (expected[0], expected[1], expected[2]) = (0x00, 0x3c, 0b01_01_10_00);
        assert_eq!(Q2_0::encode(pulp::Scalar, &x, None), expected);
        expected[17] |= 0b10 << 6;
        let mut out = [0.0; 64];
        Q2_0::decode(pulp::Scalar, &expected, &mut out);
        (x[1], x[63]) = (1.0, 2.0);
        assert_eq!(out, x);
    }
}
