//! Q5_K: 5 bits each, super-blocks of 256 in 8 groups of 32, 5.5 bits per weight.
//!
//! ```text
//! d[2]  dmin[2]  scales[12]  qh[32]  qs[128]
//!
//! qs[32*c + l]: | x[64*c + 32 + l] low 4 | x[64*c + l] low 4 |      c in 0..4, l in 0..32
//!                7                      4 3                 0
//! qh[l]: bit g is the high bit of x[32*g + l]
//! scales: eight 6-bit scales s and minimums m, packed as drawn in `k_affine.rs`
//!
//! x = d * s[g] * q - dmin * m[g]      g: group of x, its index / 32
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::k_affine::{self, Format};
use super::{Block, Row, f16_at, first_bad, part, put};
use crate::bits;
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::search::Trials;

pub(super) struct Q5K;

const FORMAT: Format = Format {
    top: 31,
    trials: Trials { first: -0.5, step: 0.1, count: 15, absolute: false },
    limit: 63,
};

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * s * q - dmin * m",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field::one(
            "dmin",
            "scale of the minimums",
            FieldKind::F16,
            &[Every { first: 16, len: 16, step: 0 }],
        ),
        k_affine::SCALES,
        k_affine::MINIMUMS,
        Field::levels(
            256,
            &[Packed { at: 48, len: 4, stride: 32 }, Packed { at: 16, len: 1, stride: 32 }],
        ),
    ],
    weight: k_affine::weight,
};

impl Block<256, 176> for Q5K {
    const TYPE: TensorType = TensorType::Q5_K;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 176], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let dmin = f16_at::<2, _>(block);
        let high = bits::unpack::<1, 32, _, 256>(part::<16, 32, _>(block));
        let mut q = bits::unpack::<4, 32, _, 256>(part::<48, 128, _>(block));
        bits::add_high_bits::<4, _>(&mut q, &high);
        *out = bits::floats(&q, 0);
        for (g, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (s, m) = k_affine::unpack(part::<4, 12, _>(block), g);
            let (d, m) = (d * f32::from(s), dmin * f32::from(m));
            out.iter_mut().for_each(|x| *x = d * *x - m);
        }
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<256>, out: &mut [[u8; 176]]) {
        k_affine::encode(simd, &FORMAT, row, out, |found| {
            let mut block = [0; 176];
            put::<0, 2, _>(&mut block, found.d.to_le_bytes());
            put::<2, 2, _>(&mut block, found.dmin.to_le_bytes());
            put::<4, 12, _>(&mut block, found.scales);
            put::<16, 32, _>(&mut block, bits::pack::<1, 32, _, _>(&found.levels, 4));
            put::<48, 128, _>(&mut block, bits::pack::<4, 32, _, _>(&found.levels, 0));
            block
        })
    }

    fn bad_scale(block: &[u8; 176]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block)), ("dmin", f16_at::<2, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 176];
        // d = 1, dmin = 2, scale 1 and minimum 1 in group 0, scale 3 and minimum 0 in group 3.
        block[..9].copy_from_slice(&[0x00, 0x3c, 0x00, 0x40, 1, 0, 0, 3, 1]);
        (block[16], block[16 + 7]) = (1 << 0, 1 << 3);
        (block[48], block[48 + 32 + 7]) = (0x5a, 0xc1);
        let mut out = [0.0; 256];
        Q5K::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[1]), (26.0 - 2.0, -2.0));
        assert_eq!((out[32], out[64 + 7], out[96 + 7]), (0.0, 0.0, 84.0));
    }
}
