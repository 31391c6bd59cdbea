//! IQ2_XXS: octets from a codebook of 256 entries, super-blocks of 256 in 8 groups of 32, 2.0625
//! bits per weight.
//!
//! ```text
//! d[2]  8 groups of: points[4]  v[4]       one point for each octet
//!
//! v: | s | signs of x[24..32] | x[16..24] | x[8..16] | x[0..8] |      signs: as in `iq2_iq3.rs`
//!   31 28 27                21 20       14 13       7 6        0
//!
//! x = d * (0.5 + s) / 4 * value * sign      d: f16; value: of the point, 8, 25 or 43
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::iq2_iq3::{self, Format, Refit, SuperBlock};
use super::{Block, Importance, error_weights, f16_at, first_bad, part, put};
use crate::layout::Place::{Every, Run};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{grids, search};

pub(super) struct IQ2XXS;

const FORMAT: Format<8, 3, 256> = Format {
    grid: &grids::IQ2_XXS,
    even_signs: true,
    zero_group: search::ZERO_GROUP,
    fit_first: true,
    step: 0.1,
    refit: Refit::All,
    correction: 1.0,
};

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (0.5 + s) / 4 * value * sign",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            name: "point",
            about: "codebook index of 8 weights",
            kind: FieldKind::Point,
            count: 32,
            bits: &[Run(|o| (8 * (2 + o / 4 * 8 + o % 4), 8))],
            of: Some(|w| w / 8),
        },
        Field {
            name: "signs",
            about: "signs of 8 weights; the eighth makes the number of negative signs even",
            kind: FieldKind::Signs,
            count: 32,
            bits: &[Run(|o| (8 * (6 + o / 4 * 8) + 7 * (o % 4), 7))],
            of: Some(|w| w / 8),
        },
        Field {
            name: "s",
            about: "scale of 32 weights",
            kind: FieldKind::Unsigned,
            count: 8,
            bits: &[Every { first: 76, len: 4, step: 64 }],
            of: Some(|w| w / 32),
        },
    ],
    weight: |of| {
        let d = of.value(0) * (0.5 + of.value(3)) * 0.25;
        iq2_iq3::weight(
            d,
            &grids::IQ2_XXS.values[of.raw(1)],
            iq2_iq3::even_signs(of.raw(2) as u8),
            of.w,
        )
    },
};

impl Block<256, 66> for IQ2XXS {
    const TYPE: TensorType = TensorType::IQ2_XXS;
    const REQUIRES_IMPORTANCE: bool = true;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 66], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let groups = part::<2, 64, _>(block).as_chunks::<8>().0;
        for (out, &[a, b, c, e, v @ ..]) in out.as_chunks_mut::<32>().0.iter_mut().zip(groups) {
            let v = u32::from_le_bytes(v);
            let d = d * (0.5 + (v >> 28) as f32) * 0.25;
            for (i, (out, point)) in out.as_chunks_mut().0.iter_mut().zip([a, b, c, e]).enumerate()
            {
                let signs = iq2_iq3::even_signs((v >> (7 * i)) as u8 & 127);
                *out = iq2_iq3::decode(d, &grids::IQ2_XXS.values[usize::from(point)], signs);
            }
        }
    }

    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], importance: Option<Importance<256>>) -> [u8; 66] {
        let importance = importance.expect("the codec rejects rows without importance").columns;
        let energy = search::sum_squares(x) / 256.0;
        let weights = error_weights::emphasize(importance, x, energy);
        let found: SuperBlock<32, 8> = FORMAT.encode::<_, 32, 13, 16, _, _>(simd, x, &weights);
        let mut groups = [0; 64];
        for (g, bytes) in groups.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let mut v = u32::from(found.scales[g]) << 28;
            for (i, byte) in bytes[..4].iter_mut().enumerate() {
                *byte = found.points[4 * g + i] as u8;
                v |= u32::from(found.signs[4 * g + i] & 127) << (7 * i);
            }
            bytes[4..].copy_from_slice(&v.to_le_bytes());
        }
        let mut block = [0; 66];
        put::<0, 2, _>(&mut block, found.d.to_le_bytes());
        put::<2, 64, _>(&mut block, groups);
        block
    }

    fn bad_scale(block: &[u8; 66]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 66];
        // d = 8, so a group with s = 0 has scale 1; s = 1 in group 1, scale 3.
        block[..2].copy_from_slice(&[0x00, 0x48]);
        // Grid point 1 has level 2 at weight 0; in group 1, weight 9 is negative, and so weight 15
        // too.
        block[2 + 8 + 1] = 1;
        block[2 + 8 + 4..][..4].copy_from_slice(&(1u32 << 28 | 0b10 << 7).to_le_bytes());
        let mut out = [0.0; 256];
        IQ2XXS::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[255]), (8.0, 8.0));
        assert_eq!(out[32 + 8..32 + 16], [129.0, -24.0, 24.0, 24.0, 24.0, 24.0, 24.0, -24.0]);
    }
}
