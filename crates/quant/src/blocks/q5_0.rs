//! Q5_0: 5 bits each and one scale for 32 weights, 5.5 bits per weight.
//!
//! ```text
//! d[2]  qh[4]  qs[16]     qs[j]: | x[j+16] low 4 | x[j] low 4 |
//!                                 7             4 3          0
//!                         qh as a 32-bit number: bit i is the high bit of x[i]
//!
//! x = d * (q - 16)        d: f16, of either sign: the weight of largest magnitude gets q = 0
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, legacy_quants, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field};
use crate::{bits, lanes};

pub(super) struct Q5_0;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (q - 16)",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field::levels(
            32,
            &[Packed { at: 6, len: 4, stride: 16 }, Packed { at: 2, len: 1, stride: 1 }],
        ),
    ],
    weight: |of| (of.value(1) - 16.0) * of.value(0),
};

impl Block<32, 22> for Q5_0 {
    const TYPE: TensorType = TensorType::Q5_0;
    const USES_ROW_MEAN_SQUARE: bool = true;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 22], out: &mut [f32; 32]) {
        let d = f16_at::<0, _>(block);
        let high = bits::unpack::<1, 1, _, 32>(part::<2, 4, _>(block));
        let mut q = bits::unpack::<4, 16, _, 32>(part::<6, 16, _>(block));
        bits::add_high_bits::<4, _>(&mut q, &high);
        lanes::scale_levels(simd, &q, 16.0, d, out);
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<32>, out: &mut [[u8; 22]]) {
        legacy_quants::encode_symmetric(simd, 16, row, out, pack);
    }

    fn bad_scale(block: &[u8; 22]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[inline(always)]
fn pack(d: [u8; 2], q: &[u8; 32]) -> [u8; 22] {
    let mut block = [0; 22];
    put::<0, 2, _>(&mut block, d);
    put::<2, 4, _>(&mut block, bits::pack::<1, 1, _, _>(q, 4));
    put::<6, 16, _>(&mut block, bits::pack::<4, 16, _, _>(q, 0));
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[17]) = (-16.0, 15.0, -3.0);
        let mut expected = [0; 22];
        expected[..6].copy_from_slice(&[0x00, 0x3c, 0xfe, 0xff, 0xfd, 0xff]);
        expected[7] = 0xdf;
        assert_eq!(Q5_0::encode(pulp::Scalar, &x, None), expected);
        let mut out = [0.0; 32];
        Q5_0::decode(pulp::Scalar, &expected, &mut out);
        assert_eq!(out, x);
    }
}
