//! IQ3_S: quartets from a codebook of 512 entries, super-blocks of 256 in 8 groups of 32, 3.4375
//! bits per weight.
//!
//! ```text
//! d[2]  qs[64]  qh[8]  signs[32]  scales[4]
//!
//! qs[k]:      low 8 bits of the point of quartet k                         k in 0..64
//! qh[g]:      bit i is the high bit of the point of quartet 8*g + i        g in 0..8
//! signs[o]:   bit i is set if x[8*o + i] is negative                       o in 0..32
//! scales[j]:  | s[2*j + 1] | s[2*j] |                                      j in 0..4
//!              7          4 3      0
//!
//! x = d * (1 + 2 * s[g]) * value * sign        d: f16; g: group of x, its index / 32
//! ```

use gguf::TensorType;
use pulp::Simd;

use super::iq2_iq3::{self, Format, Refit, SuperBlock};
use super::{Block, Importance, error_weights, f16_at, first_bad, part, put};
use crate::layout::Place::Every;
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::{bits, grids, search};

pub(super) struct IQ3S;

const FORMAT: Format<4, 8, 512> = Format {
    grid: &grids::IQ3_S,
    even_signs: false,
    // Only exact zeros.
    zero_group: f32::from_bits(1),
    fit_first: false,
    step: 0.2,
    refit: Refit::AllIfAnyOffGrid,
    correction: 1.033,
};

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (1 + 2 * s) * value * sign",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            name: "point",
            about: "codebook index of 4 weights",
            kind: FieldKind::Point,
            count: 64,
            bits: &[Every { first: 16, len: 8, step: 8 }, Every { first: 528, len: 1, step: 1 }],
            of: Some(|w| w / 4),
        },
        Field {
            name: "signs",
            about: "signs of 8 weights",
            kind: FieldKind::Signs,
            count: 32,
            bits: &[Every { first: 592, len: 8, step: 8 }],
            of: Some(|w| w / 8),
        },
        Field {
            name: "s",
            about: "scale of 32 weights",
            kind: FieldKind::Unsigned,
            count: 8,
            bits: &[Every { first: 848, len: 4, step: 4 }],
            of: Some(|w| w / 32),
        },
    ],
    weight: |of| {
        let d = of.value(0) * (1.0 + 2.0 * of.value(3));
        iq2_iq3::weight(d, &grids::IQ3_S.values[of.raw(1)], of.raw(2) as u8, of.w)
    },
};

impl Block<256, 110> for IQ3S {
    const TYPE: TensorType = TensorType::IQ3_S;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 110], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let high = bits::unpack::<1, 1, _, 64>(part::<66, 8, _>(block));
        let signs = part::<74, 32, _>(block);
        let scales = bits::unpack::<4, 1, _, 8>(part::<106, 4, _>(block));
        let quartets = part::<2, 64, _>(block).iter().zip(high);
        let quartets = out.as_chunks_mut().0.iter_mut().zip(quartets);
        for (k, (out, (&low, high))) in quartets.enumerate() {
            let d = d * f32::from(1 + 2 * scales[k / 8]);
            let point = usize::from(low) | usize::from(high & 1) << 8;
            let signs = signs[k / 2] >> (4 * (k % 2));
            *out = iq2_iq3::decode(d, &grids::IQ3_S.values[point], signs);
        }
    }

    #[inline(always)]
    fn encode<S: Simd>(simd: S, x: &[f32; 256], importance: Option<Importance<256>>) -> [u8; 110] {
        let energy = 2.0 * search::sum_squares(x) / 256.0;
        let weights = match importance {
            None => error_weights::squares(x),
            Some(w) => error_weights::emphasize(w.columns, x, energy),
        };
        let found: SuperBlock<64, 8> = FORMAT.encode::<_, 32, 19, 32, _, _>(simd, x, &weights);
        let high = found.points.map(|point| (point >> 8) as u8);
        let (low, signs) = without_gaps(x, found.points.map(|point| point as u8), found.signs);
        let mut block = [0; 110];
        put::<0, 2, _>(&mut block, found.d.to_le_bytes());
        put::<2, 64, _>(&mut block, low);
        put::<66, 8, _>(&mut block, bits::pack::<1, 1, _, _>(&high, 0));
        put::<74, 32, _>(&mut block, signs);
        put::<106, 4, _>(&mut block, bits::pack::<4, 1, _, _>(&found.scales, 0));
        block
    }

    fn bad_scale(block: &[u8; 110]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

/// Compacts the low bits of the points and the signs: the bytes of all-zero groups are removed.
///
/// This reproduces a bug of llama.cpp's encoder, whose bytes are the reference: it does not advance
/// these two fields for an all-zero group, so the fields of the following groups in the super-block
/// are stored too early and decode to wrong weights.
fn without_gaps(x: &[f32; 256], low: [u8; 64], signs: [u8; 32]) -> ([u8; 64], [u8; 32]) {
    let (mut packed_low, mut packed_signs) = ([0; 64], [0; 32]);
    let to = packed_low.as_chunks_mut::<8>().0.iter_mut();
    let mut to = to.zip(packed_signs.as_chunks_mut::<4>().0);
    let from = low.as_chunks::<8>().0.iter().zip(signs.as_chunks::<4>().0);
    let from = from.zip(x.chunks_exact(32)).filter(|(_, x)| x.iter().any(|&x| x != 0.0));
    for ((low, signs), _) in from {
        if let Some((to_low, to_signs)) = to.next() {
            (*to_low, *to_signs) = (*low, *signs);
        }
    }
    (packed_low, packed_signs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_groups_leave_no_gap() {
        let mut x = [0.0; 256];
        x[32..64].fill(-1.0);
        let block = IQ3S::encode(pulp::Scalar, &x, None);
        // The levels of group 1 are in the place of group 0; its scale is in its own place.
        assert!(block[2..10].iter().all(|&q| q != 0) && block[10..66].iter().all(|&q| q == 0));
        assert_eq!(block[74..79], [0xff, 0xff, 0xff, 0xff, 0]);
        assert_eq!(block[106..], [0xf0, 0, 0, 0]);
    }

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 110];
        // d = 1; s[3] = 1, scale 3.
        block[..2].copy_from_slice(&[0x00, 0x3c]);
        block[106 + 1] = 0x10;
        // Quartet 29, the second of octet 14: grid point 0x101, its weight 1 negative.
        (block[2 + 29], block[66 + 3], block[74 + 14]) = (0x01, 1 << 5, 0x20);
        let mut out = [0.0; 256];
        IQ3S::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[95], out[96], out[255]), (1.0, 3.0, 1.0));
        let mut expected = grids::IQ3_S.values[0x101].map(|v| 3.0 * f32::from(v));
        expected[1] *= -1.0;
        assert_eq!(out[116..120], expected);
    }
}
