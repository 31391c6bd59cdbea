//! IQ2_XS: octets from a codebook of 512 entries, super-blocks of 256 in 16 groups of 16, 2.3125
//! bits per weight.
//!
//! ```text
//! d[2]  qs[64]  scales[8]
//!
//! qs[2*o], [2*o + 1]: | signs | point |                o in 0..32: octet; signs as in `iq2_iq3.rs`
//!                     15     9 8     0
//! scales[j]:          | s[2*j + 1] | s[2*j] |          j in 0..8
//!                      7          4 3      0
//!
//! x = d * (0.5 + s[g]) / 4 * value * sign      d: f16; g: group of x, its index / 16
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::iq2_iq3::{self, Format, Refit, SuperBlock};
use super::{Block, Importance, error_weights, f16_at, first_bad, part, put};
use crate::layout::Place::Every;
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{bits, grids, search};

pub(super) struct IQ2XS;

const FORMAT: Format<8, 3, 512> = Format {
    grid: &grids::IQ2_XS,
    even_signs: true,
    zero_group: search::ZERO_GROUP,
    fit_first: false,
    step: 0.1,
    refit: Refit::OffGrid,
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
            bits: &[Every { first: 16, len: 9, step: 16 }],
            of: Some(|w| w / 8),
        },
        Field {
            name: "signs",
            about: "signs of 8 weights; the eighth makes the number of negative signs even",
            kind: FieldKind::Signs,
            count: 32,
            bits: &[Every { first: 25, len: 7, step: 16 }],
            of: Some(|w| w / 8),
        },
        Field {
            name: "s",
            about: "scale of 16 weights",
            kind: FieldKind::Unsigned,
            count: 16,
            bits: &[Every { first: 528, len: 4, step: 4 }],
            of: Some(|w| w / 16),
        },
    ],
    weight: |of| {
        let d = of.value(0) * (0.5 + of.value(3)) * 0.25;
        iq2_iq3::weight(
            d,
            &grids::IQ2_XS.values[of.raw(1)],
            iq2_iq3::even_signs(of.raw(2) as u8),
            of.w,
        )
    },
};

impl Block<256, 74> for IQ2XS {
    const TYPE: TensorType = TensorType::IQ2_XS;
    const REQUIRES_IMPORTANCE: bool = true;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 74], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let scales = bits::unpack::<4, 1, _, 16>(part::<66, 8, _>(block));
        let octets = out.as_chunks_mut().0.iter_mut().zip(part::<2, 64, _>(block).as_chunks().0);
        for (o, (out, q)) in octets.enumerate() {
            let q = u16::from_le_bytes(*q);
            let d = d * (0.5 + f32::from(scales[o / 2])) * 0.25;
            let values = &grids::IQ2_XS.values[usize::from(q & 511)];
            *out = iq2_iq3::decode(d, values, iq2_iq3::even_signs((q >> 9) as u8));
        }
    }

    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], importance: Option<Importance<256>>) -> [u8; 74] {
        let importance = importance.expect("the codec rejects rows without importance").columns;
        let energy = search::sum_squares(x) / 256.0;
        let weights = error_weights::emphasize(importance, x, energy);
        let found: SuperBlock<32, 16> = FORMAT.encode::<_, 16, 19, 32, _, _>(simd, x, &weights);
        let mut octets = [0; 64];
        let found_octets = found.points.iter().zip(found.signs);
        for (bytes, (point, signs)) in octets.as_chunks_mut().0.iter_mut().zip(found_octets) {
            *bytes = (point | u16::from(signs & 127) << 9).to_le_bytes();
        }
        let mut block = [0; 74];
        put::<0, 2, _>(&mut block, found.d.to_le_bytes());
        put::<2, 64, _>(&mut block, octets);
        put::<66, 8, _>(&mut block, bits::pack::<4, 1, _, _>(&found.scales, 0));
        block
    }

    fn bad_scale(block: &[u8; 74]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 74];
        // d = 8, so a group with s = 0 has scale 1; s[3] = 1, scale 3.
        block[..2].copy_from_slice(&[0x00, 0x48]);
        block[66 + 1] = 0x10;
        // Grid point 1 has level 2 at weight 0; in octet 7 weights 1 and 2 are negative.
        block[2 + 2 * 7..][..2].copy_from_slice(&(1u16 | 0b110 << 9).to_le_bytes());
        let mut out = [0.0; 256];
        IQ2XS::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[47], out[48], out[255]), (8.0, 24.0, 8.0));
        assert_eq!(out[56..60], [129.0, -24.0, -24.0, 24.0]);
    }
}
