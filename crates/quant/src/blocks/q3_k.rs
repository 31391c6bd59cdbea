//! Q3_K: 3 bits each, super-blocks of 256 in 16 groups of 16, 3.4375 bits per weight.
//!
//! ```text
//! hmask[32]  qs[64]  scales[12]  d[2]
//!
//! hmask[l]:     bit k is the high bit of x[32*k + l]
//! qs[32*h + l]: | x[128*h + 96 + l] | .. 64 + l | .. 32 + l | x[128*h + l] |   low 2 bits of each
//!                7                 6 5         4 3         2 1            0    h 0, 1; l in 0..32
//! scales[j]:    | s[j+8] low 4 | s[j] low 4 |                                  j in 0..8
//!                7            4 3          0
//! scales[8+j]:  | s[j+12] | s[j+8] | s[j+4] | s[j] |     upper 2 bits of each, j in 0..4
//!                7       6 5      4 3      2 1    0
//!
//! x = d * (s[g] - 32) * (q - 4)         d: f16; g: group of x, its index / 16
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

/// Scales of super-blocks and of their groups.
type Scales = ([f32; CHUNK], [[u8; 16]; CHUNK]);

pub(super) struct Q3K;

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * (s - 32) * (q - 4)",
    fields: &[
        Field::levels(
            256,
            &[Packed { at: 32, len: 2, stride: 32 }, Packed { at: 0, len: 1, stride: 32 }],
        ),
        Field {
            name: "s",
            about: "scale of 16 weights",
            kind: FieldKind::Unsigned,
            count: 16,
            bits: &[Packed { at: 96, len: 4, stride: 8 }, Packed { at: 104, len: 2, stride: 4 }],
            of: Some(|w| w / 16),
        },
        Field::scale(&[Every { first: 864, len: 16, step: 0 }]),
    ],
    weight: |of| of.value(2) * (of.value(1) - 32.0) * (of.value(0) - 4.0),
};

impl Block<256, 110> for Q3K {
    const TYPE: TensorType = TensorType::Q3_K;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 110], out: &mut [f32; 256]) {
        let d = f16_at::<108, _>(block);
        let high = bits::unpack::<1, 32, _, 256>(part::<0, 32, _>(block));
        let mut q = bits::unpack::<2, 32, _, 256>(part::<32, 64, _>(block));
        bits::add_high_bits::<2, _>(&mut q, &high);
        let levels = bits::floats(&q, 4);
        let groups = levels.as_chunks::<16>().0.iter().zip(unpack(part::<96, 12, _>(block)));
        for (out, (levels, s)) in out.as_chunks_mut::<16>().0.iter_mut().zip(groups) {
            lanes::scale(simd, levels, d * (i32::from(s) - 32) as f32, out);
        }
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<256>, out: &mut [[u8; 110]]) {
        for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let groups = row.x.as_flattened().as_chunks::<16>().0;
            let mut fits = Fits::new();
            let (scales, found) = match row.columns {
                None => {
                    let found = fits.symmetric_descent(simd, 4, groups);
                    (round(&fits.scale), Some(found))
                }
                Some(columns) => (fit_weighted(simd, row.x, columns, &mut fits), None),
            };
            for (b, block) in out.iter_mut().enumerate() {
                let (d, s) = (f16::from_f32(scales.0[b]), scales.1[b]);
                let (exact_d, mut q) = (d.to_f32(), [0.0; 256]);
                // The fit used exact scales; the levels must match the rounded ones.
                for (i, q) in q.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                    let (g, d) = (16 * b + i, exact_d * (i32::from(s[i]) - 32) as f32);
                    match &found {
                        Some(found) if d == 0.0 => *q = found[g],
                        _ => fits.round_symmetric(simd, (4, g), &groups[g], d, q),
                    }
                }
                let q = lanes::bytes(&q);
                put::<0, 32, _>(block, bits::pack::<1, 32, _, _>(&q, 2));
                put::<32, 64, _>(block, bits::pack::<2, 32, _, _>(&q, 0));
                put::<96, 12, _>(block, pack(&s));
                put::<108, 2, _>(block, d.to_le_bytes());
            }
        }
    }

    fn bad_scale(block: &[u8; 110]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<108, _>(block))])
    }
}

/// Rounds the scales of independently fitted groups; the scale of largest magnitude becomes s = 0.
#[inline(always)]
fn round(scales: &[f32]) -> Scales {
    let (mut d, mut s) = ([0.0; CHUNK], [[0; 16]; CHUNK]);
    for ((v, d), s) in scales.as_chunks::<16>().0.iter().zip(&mut d).zip(&mut s) {
        let extreme = search::extreme(v);
        if extreme != 0.0 {
            let inverse = -32.0 / extreme;
            *d = 1.0 / inverse;
            // Through i8, as in C: matters if `inverse` overflowed.
            for (s, v) in s.iter_mut().zip(v) {
                *s = ((search::nearest(inverse * v) as i8).clamp(-32, 31) + 32) as u8;
            }
        }
    }
    (d, s)
}

/// Fits each group with importance weights, then searches the super-block scale, weighting each
/// group by the sum of its weights.
#[inline(always)]
fn fit_weighted<S: Simd>(
    simd: S,
    x: &[[f32; 256]],
    columns: &[[f32; 256]],
    fits: &mut Fits,
) -> Scales {
    let energies = search::sums_of_squares::<256, CHUNK>(x).map(|sum| 2.0 * sum / 256.0);
    let groups = x.as_flattened().as_chunks::<16>().0;
    let columns = columns.as_flattened().as_chunks::<16>().0;
    fits.symmetric(
        simd,
        4,
        groups,
        #[inline(always)]
        |at, x| {
            let energy = |lane: usize| energies[((at + lane) / 16).min(CHUNK - 1)];
            search::emphasize_lanes(simd, &columns[at..], x, energy)
        },
    );
    let scales = &fits.scale.as_chunks::<16>().0[..x.len()];
    let weights = fits.weight.as_chunks::<16>().0;
    let mut scale_fits = Fits::new();
    scale_fits.symmetric(simd, 32, scales, |at, _| Lanes::transpose(simd, &weights[at..]));
    let (mut d, mut s) = ([0.0; CHUNK], [[0; 16]; CHUNK]);
    for (b, scales) in scales.iter().enumerate() {
        let mut levels = [0.0; 16];
        scale_fits.symmetric_levels(simd, (32, b), scales, &mut levels);
        (d[b], s[b]) = (scale_fits.scale[b], lanes::bytes(&levels));
    }
    (d, s)
}

/// The low 4 bits of the 16 scales are packed like Q4_0 with stride 8, the upper 2 with stride 4.
#[inline(always)]
fn pack(s: &[u8; 16]) -> [u8; 12] {
    let mut bytes = [0; 12];
    put::<0, 8, _>(&mut bytes, bits::pack::<4, 8, _, _>(s, 0));
    put::<8, 4, _>(&mut bytes, bits::pack::<2, 4, _, _>(s, 4));
    bytes
}

#[inline(always)]
fn unpack(bytes: &[u8; 12]) -> [u8; 16] {
    let low = bits::unpack::<4, 8, _, 16>(part::<0, 8, _>(bytes));
    let high = bits::unpack::<2, 4, _, 16>(part::<8, 4, _>(bytes));
    std::array::from_fn(|g| low[g] | high[g] << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 110];
        // d = 1; all scales 32 (times 0) except s[0] = 0x21 (times 1) and s[13] = 0x1e (times -2).
        let mut s = [32; 16];
        (s[0], s[13]) = (0x21, 0x1e);
        block[96..108].copy_from_slice(&[1, 0, 0, 0, 0, 0xe0, 0, 0, 0xaa, 0x6a, 0xaa, 0xaa]);
        assert_eq!(block[96..108], pack(&s));
        (block[108], block[109]) = (0x00, 0x3c);
        // x[1]: q = 0b110; x[208 = 128 + 64 + 16]: q = 0b001.
        (block[1], block[32 + 1], block[32 + 32 + 16]) = (1 << 0, 0b10, 0b01 << 4);
        let mut out = [0.0; 256];
        Q3K::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[1]), (-4.0, 2.0));
        assert_eq!((out[100], out[208], out[209]), (0.0, 6.0, 8.0));
    }
}
