//! Q5_1: 5 bits each, one scale and one minimum for 32 weights, 6 bits per weight.
//!
//! ```text
//! d[2]  m[2]  qh[4]  qs[16]   qs[j]: | x[j+16] low 4 | x[j] low 4 |
//!                                     7             4 3          0
//!                             qh as a 32-bit number: bit i is the high bit of x[i]
//!
//! x = d * q + m               d, m: f16
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, legacy_quants, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{bits, lanes};

pub(super) struct Q5_1;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * q + m",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field::one(
            "m",
            "minimum of the block",
            FieldKind::F16,
            &[Every { first: 16, len: 16, step: 0 }],
        ),
        Field::levels(
            32,
            &[Packed { at: 8, len: 4, stride: 16 }, Packed { at: 4, len: 1, stride: 1 }],
        ),
    ],
    weight: |of| of.value(0) * of.value(2) + of.value(1),
};

impl Block<32, 24> for Q5_1 {
    const TYPE: TensorType = TensorType::Q5_1;
    const USES_ROW_MEAN_SQUARE: bool = true;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 24], out: &mut [f32; 32]) {
        let (d, m) = (f16_at::<0, _>(block), f16_at::<2, _>(block));
        let high = bits::unpack::<1, 1, _, 32>(part::<4, 4, _>(block));
        let mut q = bits::unpack::<4, 16, _, 32>(part::<8, 16, _>(block));
        bits::add_high_bits::<4, _>(&mut q, &high);
        lanes::affine(simd, &lanes::floats(simd, &q), (d, m), out);
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<32>, out: &mut [[u8; 24]]) {
        legacy_quants::encode_affine(simd, 31, row, out, pack);
    }

    fn bad_scale(block: &[u8; 24]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block)), ("m", f16_at::<2, _>(block))])
    }
}

#[inline(always)]
fn pack(d: [u8; 2], m: [u8; 2], q: &[u8; 32]) -> [u8; 24] {
    let mut block = [0; 24];
    put::<0, 2, _>(&mut block, d);
    put::<2, 2, _>(&mut block, m);
    put::<4, 4, _>(&mut block, bits::pack::<1, 1, _, _>(q, 4));
    put::<8, 16, _>(&mut block, bits::pack::<4, 16, _, _>(q, 0));
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [2.0; 32];
        (x[1], x[17]) = (33.0, 21.0);
        let mut expected = [0; 24];
        expected[..8].copy_from_slice(&[0x00, 0x3c, 0x00, 0x40, 0x02, 0x00, 0x02, 0x00]);
        expected[9] = 0x3f;
        assert_eq!(Q5_1::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        Q5_1::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }
}
