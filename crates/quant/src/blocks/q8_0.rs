//! Q8_0: 8 bits each and one scale for 32 weights, 8.5 bits per weight.
//!
//! ```text
//! d[2]  qs[32]      qs[j]: x[j], signed
//!
//! x = d * q         d: f16
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, part, put};
use crate::layout::Place::Every;
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{lanes, search};

pub(super) struct Q8_0;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * q",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            name: "q",
            about: "quantized value of a weight",
            kind: FieldKind::Signed,
            count: 32,
            bits: &[Every { first: 16, len: 8, step: 8 }],
            of: Some(|w| w),
        },
    ],
    weight: |of| of.value(0) * of.value(1),
};

impl Block<32, 34> for Q8_0 {
    const TYPE: TensorType = TensorType::Q8_0;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 34], out: &mut [f32; 32]) {
        let q = lanes::floats(simd, part::<2, 32, _>(block));
        lanes::scale(simd, &q, f16_at::<0, _>(block), out);
    }

    /// Like llama.cpp's encoder, ignores importance weights.
    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<32>, out: &mut [[u8; 34]]) {
        for (x, out) in row.x.chunks(search::BATCH).zip(out.chunks_mut(search::BATCH)) {
            let found = search::signed_levels(simd, 127, x);
            for ((block, d), q) in out.iter_mut().zip(found.scale).zip(found.levels) {
                put::<0, 2, _>(block, d);
                put::<2, 32, _>(block, q);
            }
        }
    }

    fn bad_scale(block: &[u8; 34]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[31]) = (-127.0, 1.0, 126.5);
        let mut expected = [0; 34];
        (expected[0], expected[1]) = (0x00, 0x3c);
        (expected[2], expected[3], expected[33]) = (0x81, 0x01, 0x7f);
        assert_eq!(Q8_0::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        Q8_0::decode(pulp::Scalar, &expected, &mut out);
        x[31] = 127.0;
        assert_eq!(out, x);
    }
}
