//! IQ2_S: octets from a codebook of 1024 entries, super-blocks of 256 in 16 groups of 16, 2.5625
//! bits per weight.
//!
//! ```text
//! d[2]  qs[32]  signs[32]  qh[8]  scales[8]
//!
//! qs[o]:      low 8 bits of the point of octet o                          o in 0..32
//! signs[o]:   bit i is set if weight i of octet o is negative
//! qh[j]:      | octet 4*j + 3 | 4*j + 2 | 4*j + 1 | 4*j |                 upper 2 bits of the points
//!              7             6 5       4 3       2 1   0
//! scales[j]:  | s[2*j + 1] | s[2*j] |                                     j in 0..8
//!              7          4 3      0
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

pub(super) struct IQ2S;

const FORMAT: Format<8, 3, 1024> = Format {
    grid: &grids::IQ2_S,
    even_signs: false,
    zero_group: 1e-8,
    fit_first: false,
    step: 0.1,
    refit: Refit::OffGrid,
    correction: 0.9875,
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
            bits: &[Every { first: 16, len: 8, step: 8 }, Every { first: 528, len: 2, step: 2 }],
            of: Some(|w| w / 8),
        },
        Field {
            name: "signs",
            about: "signs of 8 weights",
            kind: FieldKind::Signs,
            count: 32,
            bits: &[Every { first: 272, len: 8, step: 8 }],
            of: Some(|w| w / 8),
        },
        Field {
            name: "s",
            about: "scale of 16 weights",
            kind: FieldKind::Unsigned,
            count: 16,
            bits: &[Every { first: 592, len: 4, step: 4 }],
            of: Some(|w| w / 16),
        },
    ],
    weight: |of| {
        let d = of.value(0) * (0.5 + of.value(3)) * 0.25;
        iq2_iq3::weight(d, &grids::IQ2_S.values[of.raw(1)], of.raw(2) as u8, of.w)
    },
};

impl Block<256, 82> for IQ2S {
    const TYPE: TensorType = TensorType::IQ2_S;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 82], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let high = bits::unpack::<2, 1, _, 32>(part::<66, 8, _>(block));
        let scales = bits::unpack::<4, 1, _, 16>(part::<74, 8, _>(block));
        let octets = part::<2, 32, _>(block).iter().zip(part::<34, 32, _>(block));
        let octets = out.as_chunks_mut().0.iter_mut().zip(octets);
        for (o, (out, (&low, &signs))) in octets.enumerate() {
            let d = d * (0.5 + f32::from(scales[o / 2])) * 0.25;
            let point = usize::from(low) | usize::from(high[o] & 3) << 8;
            *out = iq2_iq3::decode(d, &grids::IQ2_S.values[point], signs);
        }
    }

    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], importance: Option<Importance<256>>) -> [u8; 82] {
        let energy = 2.0 * search::sum_squares(x) / 256.0;
        let weights = match importance {
            None => x.map(|x| 0.25 * energy + x * x),
            Some(w) => error_weights::emphasize(w.columns, x, energy),
        };
        let found: SuperBlock<32, 16> = FORMAT.encode::<_, 16, 19, 32, _, _>(simd, x, &weights);
        let high = found.points.map(|point| (point >> 8) as u8);
        let mut block = [0; 82];
        put::<0, 2, _>(&mut block, found.d.to_le_bytes());
        put::<2, 32, _>(&mut block, found.points.map(|point| point as u8));
        put::<34, 32, _>(&mut block, found.signs);
        put::<66, 8, _>(&mut block, bits::pack::<2, 1, _, _>(&high, 0));
        put::<74, 8, _>(&mut block, bits::pack::<4, 1, _, _>(&found.scales, 0));
        block
    }

    fn bad_scale(block: &[u8; 82]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 82];
        // d = 8, so a group with s = 0 has scale 1; s[3] = 1, scale 3.
        block[..2].copy_from_slice(&[0x00, 0x48]);
        block[74 + 1] = 0x10;
        // Octet 7: grid point 0x301, weights 1 and 7 negative.
        (block[2 + 7], block[34 + 7], block[66 + 1]) = (0x01, 0x82, 3 << 6);
        let mut out = [0.0; 256];
        IQ2S::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[47], out[48], out[255]), (8.0, 24.0, 8.0));
        let mut expected = grids::IQ2_S.values[0x301].map(|v| 3.0 * f32::from(v));
        expected[1] *= -1.0;
        expected[7] *= -1.0;
        assert_eq!(out[56..64], expected);
    }
}
