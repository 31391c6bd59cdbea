//! IQ4_XS: 4-bit indices into a value table (`iq4.rs`), super-blocks of 256 in 8 groups of 32, 4.25
//! bits per weight.
//!
//! ```text
//! d[2]  scales_h[2]  scales_l[4]  qs[128]
//!
//! scales_h:     bits 2*g and 2*g + 1 are the upper 2 bits of s[g]              g in 0..8
//! scales_l[j]:  | s[2*j + 1] low 4 | s[2*j] low 4 |                            j in 0..4
//!                7                4 3            0
//! qs[16*g + j]: | x[32*g + 16 + j] | x[32*g + j] |                             j in 0..16
//!                7                4 3           0
//!
//! x = d * (s[g] - 32) * VALUES[q]      d: f16
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, iq4, part, put};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::value_tables::IQ4;
use crate::{bits, lanes, search};

pub(super) struct IQ4XS;

/// Number of super-blocks per batch: at least the lanes of the widest vectors.
const CHUNK: usize = 16;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (s - 32) * table[q]",
    fields: &[
        Field::scale(&[Every { first: 0, len: 16, step: 0 }]),
        Field {
            name: "s",
            about: "scale of 32 weights",
            kind: FieldKind::Unsigned,
            count: 8,
            bits: &[Every { first: 32, len: 4, step: 4 }, Every { first: 16, len: 2, step: 2 }],
            of: Some(|w| w / 32),
        },
        Field {
            kind: FieldKind::Iq4,
            about: "index into the IQ4 value table",
            ..Field::levels(256, &[Packed { at: 8, len: 4, stride: 16 }])
        },
    ],
    weight: |of| of.value(0) * (of.value(1) - 32.0) * of.value(2),
};

impl Block<256, 136> for IQ4XS {
    const TYPE: TensorType = TensorType::IQ4_XS;

    #[inline(always)]
    fn decode<S: Simd>(_: S, block: &[u8; 136], out: &mut [f32; 256]) {
        let d = f16_at::<0, _>(block);
        let high = bits::unpack::<2, 1, _, 8>(part::<2, 2, _>(block));
        let low = bits::unpack::<4, 1, _, 8>(part::<4, 4, _>(block));
        let q = bits::unpack::<4, 16, _, 256>(part::<8, 128, _>(block));
        let groups = out.chunks_exact_mut(32).zip(q.chunks_exact(32));
        for ((out, q), (low, high)) in groups.zip(low.into_iter().zip(high)) {
            let d = d * (i32::from(low | high << 4) - 32) as f32;
            for (x, &q) in out.iter_mut().zip(q) {
                *x = d * f32::from(IQ4[usize::from(q & 15)]);
            }
        }
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<256>, out: &mut [[u8; 136]]) {
        for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let energies = search::sums_of_squares::<256, CHUNK>(row.x).map(|s| s * (2.0 / 256.0));
            let groups = row.x.as_flattened().as_chunks::<32>().0;
            let columns = row.columns.map(|columns| columns.as_flattened().as_chunks::<32>().0);
            let mut scales = [0.0; 8 * CHUNK];
            iq4::fit(
                simd,
                groups,
                #[inline(always)]
                |at, x| match columns {
                    None => lanes::map(
                        x,
                        #[inline(always)]
                        |x| x * x,
                    ),
                    Some(columns) => {
                        let energy = |lane: usize| energies[((at + lane) / 8).min(CHUNK - 1)];
                        search::emphasize_lanes(simd, &columns[at..], x, energy)
                    }
                },
                &mut scales,
            );
            let scales = scales.as_chunks::<8>().0;
            for ((x, block), scales) in row.x.iter().zip(out).zip(scales) {
                *block = pack(simd, x, scales);
            }
        }
    }

    fn bad_scale(block: &[u8; 136]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<0, _>(block))])
    }
}

/// Packs a block, given the best scale of each group.
#[inline(always)]
fn pack<S: Simd>(simd: S, x: &[f32; 256], scales: &[f32; 8]) -> [u8; 136] {
    // The scale of largest magnitude becomes s = 0. An all-zero block gets d = -0.
    let d = -search::extreme(scales) / 32.0;
    let inverse = search::inverse(d);
    let (mut s, mut q) = ([0; 8], [0; 256]);
    let groups = x.as_chunks().0.iter().zip(q.as_chunks_mut().0);
    for (((x, q), s), scale) in groups.zip(&mut s).zip(scales) {
        let level = search::nearest(inverse * scale).clamp(-32, 31);
        *q = iq4::levels(simd, x, d * level as f32);
        *s = (level + 32) as u8;
    }
    let mut block = [0; 136];
    put::<0, 2, _>(&mut block, f16::from_f32(d).to_le_bytes());
    put::<2, 2, _>(&mut block, bits::pack::<2, 1, _, _>(&s, 4));
    put::<4, 4, _>(&mut block, bits::pack::<4, 1, _, _>(&s, 0));
    put::<8, 128, _>(&mut block, bits::pack::<4, 16, _, _>(&q, 0));
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 136];
        // d = 1; s[0] = 33 (times 1), s[5] = 0x1e (times -2), all others 0 (times -32).
        block[..2].copy_from_slice(&[0x00, 0x3c]);
        block[2..4].copy_from_slice(&(0b10 | 1u16 << 10).to_le_bytes());
        (block[4], block[6]) = (0x01, 0xe0);
        (block[8 + 1], block[8 + 5 * 16 + 3]) = (0x0f, 0x90);
        let mut out = [0.0; 256];
        IQ4XS::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[1], out[32]), (-127.0, 113.0, 127.0 * 32.0));
        assert_eq!((out[160 + 16 + 3], out[160 + 3]), (13.0 * -2.0, 254.0));
    }
}
