//! TQ2_0: ternary digits in 2 bits each and one scale for 256 weights, 2.0625 bits per weight.
//!
//! ```text
//! qs[64]  d[2]
//!
//! qs[32*h + l]: | x[128*h + 96 + l] | .. 64 + l | .. 32 + l | x[128*h + l] |   h 0, 1; l in 0..32
//!                7                 6 5         4 3         2 1            0
//!
//! x = d * (q - 1)         d: f16
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Importance, f16_at, first_bad, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field};
use crate::{bits, lanes, search};

pub(super) struct TQ2_0;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (q - 1)",
    fields: &[
        Field::levels(256, &[Packed { at: 0, len: 2, stride: 32 }]),
        Field::scale(&[Every { first: 512, len: 16, step: 0 }]),
    ],
    weight: |of| (of.value(0) - 1.0) * of.value(1),
};

impl Block<256, 66> for TQ2_0 {
    const TYPE: TensorType = TensorType::TQ2_0;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 66], out: &mut [f32; 256]) {
        let d = f16_at::<64, _>(block);
        let q = bits::unpack::<2, 32, _, 256>(part::<0, 64, _>(block));
        lanes::scale_levels(simd, &q, 1.0, d, out);
    }

    /// Like llama.cpp's encoder, ignores importance weights.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], _: Option<Importance<256>>) -> [u8; 66] {
        let d = search::magnitude(x);
        let q = search::ternary_levels(simd, x, search::inverse(d));
        let mut block = [0; 66];
        put::<0, 64, _>(&mut block, bits::pack::<2, 32, _, _>(&q, 0));
        put::<64, 2, _>(&mut block, f16::from_f32(d).to_le_bytes());
        block
    }

    fn bad_scale(block: &[u8; 66]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<64, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 256];
        (x[1], x[128 + 64 + 5]) = (-1.0, 0.75);
        let mut expected = [0b01_01_01_01; 66];
        (expected[1], expected[32 + 5]) = (0b01_01_01_00, 0b01_10_01_01);
        (expected[64], expected[65]) = (0x00, 0x3c);
        assert_eq!(TQ2_0::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 256];
        TQ2_0::decode(pulp::Scalar, &expected, &mut out);
        x[128 + 64 + 5] = 1.0;
        assert_eq!(out, x);
    }
}
