//! IQ3_XXS: quartets from a codebook of 256 entries, super-blocks of 256 in 8 groups of 32, 3.0625
//! bits per weight.
//!
//! ```text
//! d[2]  qs[64]  v[32]
//!
//! qs[k]:              the point of quartet k                                   k in 0..64
//! v[4*g .. 4*g + 4]:  | s | signs of x[24..32] | x[16..24] | x[8..16] | x[0..8] | of group g in 0..8
//!                    31 28 27                21 20       14 13       7 6        0
//!
//! x = d * (0.5 + s) / 2 * value * sign      d: f16; signs as in `iq2_iq3.rs`
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::iq2_iq3::{self, Format, Refit, SuperBlock};
use super::{Block, Importance, error_weights, f16_at, first_bad, part, put};
use crate::layout::Place::{Every, Run};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{grids, search};

pub(super) struct IQ3XXS;

const FORMAT: Format<4, 8, 256> = Format {
    grid: &grids::IQ3_XXS,
    even_signs: true,
    zero_group: 1e-8,
    fit_first: false,
    step: 0.2,
    refit: Refit::OffGrid,
    correction: 1.0125,
};

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (0.5 + s) / 2 * value * sign",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            name: "point",
            about: "codebook index of 4 weights",
            kind: FieldKind::Point,
            count: 64,
            bits: &[Every { first: 16, len: 8, step: 8 }],
            of: Some(|w| w / 4),
        },
        Field {
            name: "signs",
            about: "signs of 8 weights; the eighth makes the number of negative signs even",
            kind: FieldKind::Signs,
            count: 32,
            bits: &[Run(|o| (8 * (66 + o / 4 * 4) + 7 * (o % 4), 7))],
            of: Some(|w| w / 8),
        },
        Field {
            name: "s",
            about: "scale of 32 weights",
            kind: FieldKind::Unsigned,
            count: 8,
            bits: &[Every { first: 556, len: 4, step: 32 }],
            of: Some(|w| w / 32),
        },
    ],
    weight: |of| {
        let d = of.value(0) * (0.5 + of.value(3)) * 0.5;
        iq2_iq3::weight(
            d,
            &grids::IQ3_XXS.values[of.raw(1)],
            iq2_iq3::even_signs(of.raw(2) as u8),
            of.w,
        )
    },
};

impl Block<256, 98> for IQ3XXS {
    const TYPE: TensorType = TensorType::IQ3_XXS;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 98], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let groups = part::<2, 64, _>(block).as_chunks::<8>().0.iter();
        let groups = groups.zip(part::<66, 32, _>(block).as_chunks().0);
        for (out, (points, v)) in out.as_chunks_mut::<32>().0.iter_mut().zip(groups) {
            let v = u32::from_le_bytes(*v);
            let d = d * (0.5 + (v >> 28) as f32) * 0.5;
            for (k, (out, &point)) in out.as_chunks_mut().0.iter_mut().zip(points).enumerate() {
                let signs = iq2_iq3::even_signs((v >> (7 * (k / 2))) as u8 & 127);
                let values = &grids::IQ3_XXS.values[usize::from(point)];
                *out = iq2_iq3::decode(d, values, signs >> (4 * (k % 2)));
            }
        }
    }

    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], importance: Option<Importance<256>>) -> [u8; 98] {
        let energy = 2.0 * search::sum_squares(x) / 256.0;
        let weights = match importance {
            None => error_weights::squares(x),
            Some(w) => error_weights::emphasize(w.columns, x, energy),
        };
        let found: SuperBlock<64, 8> = FORMAT.encode::<_, 32, 31, 32, _, _>(simd, x, &weights);
        let mut groups = [0; 32];
        let found_groups = found.scales.into_iter().zip(found.signs.as_chunks::<4>().0);
        for (bytes, (s, signs)) in groups.as_chunks_mut().0.iter_mut().zip(found_groups) {
            let mut v = u32::from(s) << 28;
            for (i, signs) in signs.iter().enumerate() {
                v |= u32::from(signs & 127) << (7 * i);
            }
            *bytes = v.to_le_bytes();
        }
        let mut block = [0; 98];
        put::<0, 2, _>(&mut block, found.d.to_le_bytes());
        put::<2, 64, _>(&mut block, found.points.map(|point| point as u8));
        put::<66, 32, _>(&mut block, groups);
        block
    }

    fn bad_scale(block: &[u8; 98]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 98];
        // d = 4, so a group with s = 0 has scale 1; s = 1 in group 1, scale 3.
        block[..2].copy_from_slice(&[0x00, 0x44]);
        // Grid point 1 has level 2 at weight 0; in group 1, weight 9 is negative, and so weight 15
        // too.
        block[2 + 8 + 3] = 1;
        block[66 + 4..][..4].copy_from_slice(&(1u32 << 28 | 0b10 << 7).to_le_bytes());
        let mut out = [0.0; 256];
        IQ3XXS::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[255]), (4.0, 4.0));
        assert_eq!(out[40..48], [12.0, -12.0, 12.0, 12.0, 60.0, 12.0, 12.0, -12.0]);
    }
}
