//! Q4_0: 4 bits each and one scale for 32 weights, 4.5 bits per weight.
//!
//! ```text
//! d[2]  qs[16]        qs[j]: | x[j+16] | x[j] |
//!                             7       4 3    0
//!
//! x = d * (q - 8)     d: f16, of either sign: the weight of largest magnitude gets q = 0
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, legacy_quants, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field};
use crate::{bits, lanes};

pub(super) struct Q4_0;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (q - 8)",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field::levels(32, &[Packed { at: 2, len: 4, stride: 16 }]),
    ],
    weight: |of| (of.value(1) - 8.0) * of.value(0),
};

impl Block<32, 18> for Q4_0 {
    const TYPE: TensorType = TensorType::Q4_0;
    const USES_ROW_MEAN_SQUARE: bool = true;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 18], out: &mut [f32; 32]) {
        let d = f16_at::<0, _>(block);
        let q = bits::unpack::<4, 16, _, 32>(part::<2, 16, _>(block));
        lanes::scale_levels(simd, &q, 8.0, d, out);
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<32>, out: &mut [[u8; 18]]) {
        legacy_quants::encode_symmetric(simd, 8, row, out, pack);
    }

    fn bad_scale(block: &[u8; 18]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[inline(always)]
fn pack(d: [u8; 2], q: &[u8; 32]) -> [u8; 18] {
    let mut block = [0; 18];
    put::<0, 2, _>(&mut block, d);
    put::<2, 16, _>(&mut block, bits::pack::<4, 16, _, _>(q, 0));
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[17]) = (-8.0, 7.0, 3.0);
        let mut expected = [0x88; 18];
        (expected[0], expected[1]) = (0x00, 0x3c);
        (expected[2], expected[3]) = (0x80, 0xbf);
        assert_eq!(Q4_0::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        Q4_0::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }
}
