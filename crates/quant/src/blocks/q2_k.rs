//! Q2_K: 2 bits each, super-blocks of 256 in 16 groups of 16, 2.625 bits per weight.
//!
//! ```text
//! scales[16]  qs[64]  d[2]  dmin[2]
//!
//! scales[g]:    | m[g] | s[g] |                                  g: group of x, its index / 16
//!                7    4 3    0
//! qs[32*h + l]: | x[128*h + 96 + l] | .. 64 + l | .. 32 + l | x[128*h + l] |     h 0, 1; l in 0..32
//!                7                 6 5         4 3         2 1            0
//!
//! x = d * s[g] * q - dmin * m[g]        d, dmin: f16
//! ```

use gguf::TensorType;
use half::f16;
use pulp::Simd;

use super::{Block, Row, f16_at, first_bad, part, put};
use crate::lanes::{self, Lanes};
use crate::layout::Place::{Every, Packed};
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::search::{Fits, Trials};
use crate::{bits, search};

pub(super) struct Q2K;

/// Number of super-blocks per batch: at least the lanes of the widest vectors.
const CHUNK: usize = 16;

/// Scales of super-blocks and of their groups.
type Scales = ([f32; CHUNK], [[u8; 16]; CHUNK]);

const TRIALS: Trials = Trials { first: -0.5, step: 0.1, count: 15, absolute: true };

pub(super) const LAYOUT: BlockLayout = BlockLayout {
    formula: "x = d * s * q - dmin * m",
    fields: &[
        Field {
            name: "s",
            about: "scale of 16 weights",
            kind: FieldKind::Unsigned,
            count: 16,
            bits: &[Every { first: 0, len: 4, step: 8 }],
            of: Some(|w| w / 16),
        },
        Field {
            name: "m",
            about: "minimum of 16 weights",
            kind: FieldKind::Unsigned,
            count: 16,
            bits: &[Every { first: 4, len: 4, step: 8 }],
            of: Some(|w| w / 16),
        },
        Field::levels(256, &[Packed { at: 16, len: 2, stride: 32 }]),
        Field::scale(&[Every { first: 640, len: 16, step: 0 }]),
        Field::one(
            "dmin",
            "scale of the minimums",
            FieldKind::F16,
            &[Every { first: 656, len: 16, step: 0 }],
        ),
    ],
    weight: |of| of.value(3) * of.value(0) * of.value(2) - of.value(4) * of.value(1),
};

impl Block<256, 84> for Q2K {
    const TYPE: TensorType = TensorType::Q2_K;

    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; 84], out: &mut [f32; 256]) {
        let d = f16_at::<80, _>(block);
        let dmin = f16_at::<82, _>(block);
        let q = bits::unpack::<2, 32, _, 256>(part::<16, 64, _>(block));
        let levels = bits::floats(&q, 0);
        let groups = levels.as_chunks::<16>().0.iter().zip(part::<0, 16, _>(block));
        for (out, (levels, sm)) in out.as_chunks_mut::<16>().0.iter_mut().zip(groups) {
            let d = Lanes::splat(simd, d * f32::from(sm & 15));
            let m = Lanes::splat(simd, dmin * f32::from(sm >> 4));
            lanes::transform(
                simd,
                levels,
                out,
                #[inline(always)]
                |q| d * q - m,
            );
        }
    }

    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<256>, out: &mut [[u8; 84]]) {
        for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let groups = row.x.as_flattened().as_chunks::<16>().0;
            let mut fits = Fits::new();
            let ((d, s), (dmin, m)) = match row.columns {
                None => fit(simd, groups, &mut fits),
                Some(columns) => fit_weighted(simd, row.x, columns, &mut fits),
            };
            for (b, block) in out.iter_mut().enumerate() {
                let mut q = [0.0; 256];
                let (d, dmin) = (f16::from_f32(d[b]), f16::from_f32(dmin[b]));
                let (exact_d, exact_dmin) = (d.to_f32(), dmin.to_f32());
                let scales = pack(s[b], m[b]);
                // The fit used exact scales; the levels must match the rounded ones.
                for (i, q) in q.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                    let g = 16 * b + i;
                    let (s, m) = (f32::from(scales[i] & 15), f32::from(scales[i] >> 4));
                    let stored = (exact_d * s, exact_dmin * m);
                    fits.round_affine(simd, (3, g), &groups[g], stored, q);
                }
                put::<0, 16, _>(block, scales);
                put::<16, 64, _>(block, bits::pack::<2, 32, _, _>(&lanes::bytes(&q), 0));
                put::<80, 2, _>(block, d.to_le_bytes());
                put::<82, 2, _>(block, dmin.to_le_bytes());
            }
        }
    }

    fn bad_scale(block: &[u8; 84]) -> Option<(&'static str, f32)> {
        first_bad([("d", f16_at::<80, _>(block)), ("dmin", f16_at::<82, _>(block))])
    }
}

/// Fits each group independently, then rounds scales and minimums to multiples of 1/15 of the
/// maximum.
#[inline(always)]
fn fit<S: Simd>(simd: S, groups: &[[f32; 16]], fits: &mut Fits) -> (Scales, Scales) {
    fits.affine(
        simd,
        (3, &TRIALS),
        groups,
        #[inline(always)]
        |_, x| {
            lanes::map(
                x,
                #[inline(always)]
                |x| x.abs(),
            )
        },
    );
    (round(&fits.scale), round(&fits.m))
}

/// Rounds to multiples of 1/15 of the maximum of each super-block.
#[inline(always)]
fn round(all: &[f32]) -> Scales {
    let (mut d, mut levels) = ([0.0; CHUNK], [[0; 16]; CHUNK]);
    for ((v, d), levels) in all.as_chunks::<16>().0.iter().zip(&mut d).zip(&mut levels) {
        let max = search::largest(v);
        *d = max / 15.0;
        if max > 0.0 {
            for (level, v) in levels.iter_mut().zip(v) {
                *level = search::nearest(15.0 / max * v) as u8;
            }
        }
    }
    (d, levels)
}

/// Fits each group with importance weights, then searches the super-block scales of the scales and
/// of the minimums, weighting each group by the sum of its weights.
#[inline(always)]
fn fit_weighted<S: Simd>(
    simd: S,
    x: &[[f32; 256]],
    columns: &[[f32; 256]],
    fits: &mut Fits,
) -> (Scales, Scales) {
    let energies = search::sums_of_squares::<256, CHUNK>(x).map(|sum| sum / 256.0);
    let groups = x.as_flattened().as_chunks::<16>().0;
    let columns = columns.as_flattened().as_chunks::<16>().0;
    fits.affine(
        simd,
        (3, &search::WEIGHTED),
        groups,
        #[inline(always)]
        |at, x| {
            let energy = |lane: usize| energies[((at + lane) / 16).min(CHUNK - 1)];
            search::emphasize_lanes(simd, &columns[at..], x, energy)
        },
    );
    let (blocks, sums) = (x.len(), fits.weight.as_chunks().0);
    let (scales, minimums) = (fits.scale.as_chunks().0, fits.m.as_chunks().0);
    (
        search::unsigned_groups(simd, 15, &scales[..blocks], sums),
        search::unsigned_groups(simd, 15, &minimums[..blocks], sums),
    )
}

#[inline(always)]
fn pack(s: [u8; 16], m: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|g| s[g] | m[g] << 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_match_the_drawing() {
        let mut block = [0; 84];
        // d = 1, dmin = 2; group 0: scale 5, minimum 1; group 15: scale 2, minimum 0.
        (block[0], block[15]) = (0x15, 0x02);
        block[80..].copy_from_slice(&[0x00, 0x3c, 0x00, 0x40]);
        (block[16], block[16 + 63]) = (0b01_00_11_10, 0b11_00_00_00);
        let mut out = [0.0; 256];
        Q2K::decode(pulp::Scalar, &block, &mut out);
        assert_eq!((out[0], out[1], out[32]), (10.0 - 2.0, -2.0, 0.0));
        assert_eq!((out[254], out[255]), (0.0, 6.0));
    }
}
