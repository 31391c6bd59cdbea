//! Q6_K: 6 bits each, super-blocks of 256 in 16 groups of 16, 6.5625 bits per weight.
//!
//! ```text
//! ql[128]  qh[64]  scales[16]  d[2]
//!
//! ql[64*h + l]: | x[128*h + 64 + l] low 4 | x[128*h + l] low 4 |              h 0, 1; l in 0..64
//!                7                       4 3                  0
//! qh[32*h + l]: | x[128*h + 96 + l] | .. 64 + l | .. 32 + l | x[128*h + l] |  upper 2 bits of each
//!                7                 6 5         4 3         2 1            0   h 0, 1; l in 0..32
//! scales[g]:    s[g], signed                                                  g: index of x / 16
//!
//! x = d * s[g] * (q - 32)         d: f16
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, part, put};
use crate::lanes::{self, Lanes};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::search::Fits;
use crate::{bits, search};

/// Number of super-blocks per batch.
const CHUNK: usize = search::MAX_GROUPS / 16;

pub(super) struct Q6K;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * s * (q - 32)",
    fields: &[
        Field::levels(
            256,
            &[Packed { at: 0, len: 4, stride: 64 }, Packed { at: 128, len: 2, stride: 32 }],
        ),
        Field {
            name: "s",
            about: "scale of 16 weights",
            kind: FieldKind::Signed,
            count: 16,
            bits: &[Every { first: 1536, len: 8, step: 8 }],
            of: Some(|w| w / 16),
        },
        Field::scale(&[Every { first: 1664, len: 16, step: 0 }]),
    ],
    weight: |of| of.value(2) * of.value(1) * (of.value(0) - 32.0),
};

impl Block<256, 210> for Q6K {
    const TYPE: TensorType = TensorType::Q6_K;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 210], out: &mut [f32; 256]) {
        let d = f16_at::<208, _>(block);
        let mut q = bits::unpack::<4, 64, _, 256>(part::<0, 128, _>(block));
        let high = bits::unpack::<2, 32, _, 256>(part::<128, 64, _>(block));
        bits::add_high_bits::<4, _>(&mut q, &high);
        let levels = bits::floats(&q, 32);
        let groups = levels.as_chunks::<16>().0.iter().zip(part::<192, 16, _>(block));
        for (out, (levels, &s)) in out.as_chunks_mut::<16>().0.iter_mut().zip(groups) {
            lanes::scale(simd, levels, d * f32::from(s as i8), out);
        }
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<256>, out: &mut [[u8; 210]]) {
        for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let groups = row.x.as_flattened().as_chunks::<16>().0;
            let mut fits = Fits::new();
            match row.columns.map(|columns| columns.as_flattened().as_chunks::<16>().0) {
                None => fits.symmetric(
                    simd,
                    32,
                    groups,
                    #[inline(always)]
                    |_, x| {
                        lanes::map(
                            x,
                            #[inline(always)]
                            |x| x * x,
                        )
                    },
                ),
                // Importance weights without emphasis: with 64 levels the magnitudes need none.
                Some(columns) => fits.symmetric(
                    simd,
                    32,
                    groups,
                    #[inline(always)]
                    |at, _| Lanes::transpose(simd, &columns[at..]),
                ),
            }
            for (b, (scales, block)) in fits.scale.as_chunks::<16>().0.iter().zip(out).enumerate() {
                *block = [0; 210];
                let extreme = search::extreme(scales);
                if extreme.abs() < search::ZERO_GROUP {
                    continue;
                }
                let inverse = -128.0 / extreme;
                let d = f16::from_f32(1.0 / inverse);
                let mut s = [0; 16];
                for (s, v) in s.iter_mut().zip(scales) {
                    *s = search::nearest(inverse * v).min(127) as i8;
                }
                let (exact_d, mut q) = (d.to_f32(), [0.0; 256]);
                // The fit used exact scales; the levels must match the rounded ones.
                for (i, q) in q.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                    let (g, d) = (16 * b + i, exact_d * f32::from(s[i]));
                    fits.round_symmetric(simd, (32, g), &groups[g], d, q);
                }
                let q = lanes::bytes(&q);
                put::<0, 128, _>(block, bits::pack::<4, 64, _, _>(&q, 0));
                put::<128, 64, _>(block, bits::pack::<2, 32, _, _>(&q, 4));
                put::<192, 16, _>(block, s.map(|s| s as u8));
                put::<208, 2, _>(block, d.to_le_bytes());
            }
        }
    }

    fn bad_scale(block: &[u8; 210]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<208, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 210];
        // d = 1; s[0] = 1, s[15] = -2.
        (block[192], block[207], block[209]) = (1, 0xfe, 0x3c);
        (block[1], block[128 + 1]) = (0x0a, 0b10);
        (block[64 + 63], block[128 + 63]) = (0xf0, 0b11 << 6);
        let mut out = [0.0; 256];
        Q6K::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[1]), (-32.0, 10.0));
        assert_eq!((out[16], out[254], out[255]), (0.0, 64.0, -62.0));
    }
}
