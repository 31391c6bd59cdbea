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
use half::f16;
use pulp::Simd;

use super::{Block, Row, first_bad, half_at, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{Field, Kind, Layout};
use crate::search::{self, Fits};
use crate::{bits, lanes};

pub(super) struct Q5_1;

pub(super) const LAYOUT: Layout = Layout {
    formula: "x = d * q + m",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field::one(
            "m",
            "minimum of the block",
            Kind::F16,
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
        let (d, m) = (half_at::<0, _>(block), half_at::<2, _>(block));
        let high = bits::unpack::<1, 1, _, 32>(part::<4, 4, _>(block));
        let mut q = bits::unpack::<4, 16, _, 32>(part::<8, 16, _>(block));
        bits::join::<4, _>(&mut q, &high);
        lanes::affine(simd, &lanes::floats(simd, &q), (d, m), out);
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<32>, out: &mut [[u8; 24]]) {
        if row.columns.is_none() {
            for (x, out) in row.x.chunks(search::BATCH).zip(out.chunks_mut(search::BATCH)) {
                let found = search::spread_levels(simd, 31, x);
                for (b, out) in out.iter_mut().enumerate() {
                    *out = pack(found.scale[b], found.min[b], &found.levels[b]);
                }
            }
            return;
        }
        for (row, out) in row.chunks(search::MOST).zip(out.chunks_mut(search::MOST)) {
            let mut fits = Fits::new();
            fits.affine(
                simd,
                (31, &search::WEIGHTED),
                row.x,
                #[inline(always)]
                |at, x| search::emphasize_by_rows(simd, row, at, x),
            );
            for (g, (x, out)) in row.x.iter().zip(out).enumerate() {
                let mut q = [0.0; 32];
                fits.affine_levels(simd, (31, g), x, &mut q);
                let q = lanes::bytes(&q);
                let (d, m) = (f16::from_f32(fits.scale[g]), f16::from_f32(-fits.m[g]));
                *out = pack(d.to_le_bytes(), m.to_le_bytes(), &q);
            }
        }
    }

    fn bad_scale(block: &[u8; 24]) -> Option<(&'static str, f32)> {
        first_bad([("d", half_at::<0, _>(block)), ("m", half_at::<2, _>(block))])
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
    fn bytes_stand_where_the_drawing_says() {
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
