//! Q8_1: 8 bits each and one scale for 32 weights, and their scaled sum, 9 bits per weight.
//! llama.cpp's runtime quantizes activations to it; files do not contain it.
//!
//! ```text
//! d[2]  s[2]  qs[32]      qs[j]: x[j], signed
//!
//! x = d * q               d, s: f16
//! s = d * sum of q        not needed to decode
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Importance, f16_at, first_bad, part, put};
use crate::layout::Place::Every;
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{lanes, search};

pub(super) struct Q8_1;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * q",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            of: None,
            ..Field::one(
                "s",
                "d times the sum of q, not needed to decode",
                FieldKind::F16,
                &[Every { first: 16, len: 16, step: 0 }],
            )
        },
        Field {
            name: "q",
            about: "quantized value of a weight",
            kind: FieldKind::Signed,
            count: 32,
            bits: &[Every { first: 32, len: 8, step: 8 }],
            of: Some(|w| w),
        },
    ],
    weight: |of| of.value(0) * of.value(2),
};

impl Block<32, 36> for Q8_1 {
    const TYPE: TensorType = TensorType::Q8_1;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 36], out: &mut [f32; 32]) {
        let q = lanes::floats(simd, part::<4, 32, _>(block));
        lanes::scale(simd, &q, f16_at::<0, _>(block), out);
    }

    #[inline(always)]
    fn encode<S: Simd>(_: S, x: &[f32; 32], _: Option<Importance<32>>) -> [u8; 36] {
        let d = search::magnitude(x) / 127.0;
        let inverse = search::inverse(d);
        let q = x.map(|x| search::round_half_away(x * inverse));
        let sum = q.iter().map(|&q| i32::from(q)).sum::<i32>();
        let mut block = [0; 36];
        put::<0, 2, _>(&mut block, f16::from_f32(d).to_le_bytes());
        put::<2, 2, _>(&mut block, f16::from_f32(sum as f32 * d).to_le_bytes());
        put::<4, 32, _>(&mut block, q.map(|q| q as u8));
        block
    }

    fn bad_scale(block: &[u8; 36]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block)), ("s", f16_at::<2, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[31]) = (-127.0, 1.0, 126.5);
        let mut expected = [0; 36];
        // The sum is 1.
        (expected[1], expected[3]) = (0x3c, 0x3c);
        (expected[4], expected[5], expected[35]) = (0x81, 0x01, 0x7f);
        assert_eq!(Q8_1::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        Q8_1::decode(pulp::Scalar, &expected, &mut out);
        x[31] = 127.0;
        assert_eq!(out, x);
    }
}
