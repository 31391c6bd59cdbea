//! The parts that Q4_K and Q5_K share: super-blocks of 256 weights in 8 groups of 32, each with a
//! 6-bit scale `s[g]` and a 6-bit minimum `m[g]`.
//!
//! ```text
//! the 12 bytes of scales, for j in 0..4:
//!
//!            7     6 5              0
//! byte j   | s[j+4]4 |     s[j]      |     v4: the upper 2 bits of v, bits 4 and 5
//! byte j+4 | m[j+4]4 |     m[j]      |     v0: the lower 4 bits of v
//! byte j+8 |  m[j+4]0   |  s[j+4]0   |
//!            7        4 3           0
//!
//! x = d * s[g] * q - dmin * m[g]           d, dmin: f16 of the super-block
//! ```

use half::f16;
use pulp::Simd;

use super::Row;
use crate::lanes::{self, Lanes};
use crate::layout::Place::Of;
use crate::layout::{Field, FieldKind, WeightFields};
use crate::search::{self, Fits, Trials};

/// Group scales.
pub(super) const SCALES: Field = Field {
    name: "s",
    about: "scale of 32 weights",
    kind: FieldKind::Unsigned,
    count: 8,
    bits: &[Of(|g| {
        const RUNS: [&[(usize, usize)]; 8] = [
            &[(32, 6)],
            &[(40, 6)],
            &[(48, 6)],
            &[(56, 6)],
            &[(96, 4), (38, 2)],
            &[(104, 4), (46, 2)],
            &[(112, 4), (54, 2)],
            &[(120, 4), (62, 2)],
        ];
        RUNS[g % 8]
    })],
    of: Some(|w| w / 32),
};

/// Group minimums.
pub(super) const MINIMUMS: Field = Field {
    name: "m",
    about: "minimum of 32 weights",
    bits: &[Of(|g| {
        const RUNS: [&[(usize, usize)]; 8] = [
            &[(64, 6)],
            &[(72, 6)],
            &[(80, 6)],
            &[(88, 6)],
            &[(100, 4), (70, 2)],
            &[(108, 4), (78, 2)],
            &[(116, 4), (86, 2)],
            &[(124, 4), (94, 2)],
        ];
        RUNS[g % 8]
    })],
    ..SCALES
};

/// Computes a weight from the fields d, dmin, scales, minimums and levels.
pub(super) fn weight(of: WeightFields) -> f32 {
    of.value(0) * of.value(2) * of.value(4) - of.value(1) * of.value(3)
}

/// A super-block before its levels are packed.
pub(super) struct SuperBlock {
    pub d: f16,
    pub dmin: f16,
    pub scales: [u8; 12],
    pub levels: [u8; 256],
}

/// Differences between the two formats.
pub(super) struct Format {
    /// Max level.
    pub top: i32,
    /// Trial scales without importance weights.
    pub trials: Trials,
    /// Max scale or minimum with importance weights. The search can wrap a negative one to more
    /// than 6 bits; only llama.cpp's encoder of Q5_K then clamps it to 63.
    pub limit: u8,
}

/// Number of super-blocks per batch: at least the lanes of the widest vectors.
const CHUNK: usize = 16;

/// Scales of super-blocks and of their groups.
type Scales = ([f32; CHUNK], [[u8; 8]; CHUNK]);

/// Encodes a row; `pack` packs the bytes of a block.
#[inline(always)]
pub(super) fn encode<S: Simd, const BYTES: usize>(
    simd: S,
    format: &Format,
    row: Row<256>,
    out: &mut [[u8; BYTES]],
    pack_block: impl Fn(&SuperBlock) -> [u8; BYTES],
) {
    for (row, out) in row.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
        let groups = row.x.as_flattened().as_chunks::<32>().0;
        let mut fits = Fits::new();
        // Fits the groups independently, one per lane, then their scales and minimums.
        let ((d, s), (dmin, m)) = match row.columns {
            None => fit(simd, format, groups, &mut fits),
            Some(columns) => fit_weighted(simd, format, row.x, columns, &mut fits),
        };
        for (b, out) in out.iter_mut().enumerate() {
            let mut levels = [0.0; 256];
            let (d, dmin) = (f16::from_f32(d[b]), f16::from_f32(dmin[b]));
            // The fit used exact scales; the levels must match the rounded ones.
            let (exact_d, exact_dmin) = (d.to_f32(), dmin.to_f32());
            let scales = pack(&s[b], &m[b]);
            for (i, levels) in levels.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                let g = 8 * b + i;
                let (s, m) = unpack(&scales, i);
                let stored = (exact_d * f32::from(s), exact_dmin * f32::from(m));
                fits.round_affine(simd, (format.top, g), &groups[g], stored, levels);
            }
            *out = pack_block(&SuperBlock { d, dmin, scales, levels: lanes::bytes(&levels) });
        }
    }
}

/// Fits each group independently, then rounds scales and minimums.
#[inline(always)]
fn fit<S: Simd>(
    simd: S,
    format: &Format,
    groups: &[[f32; 32]],
    fits: &mut Fits,
) -> (Scales, Scales) {
    fits.affine(
        simd,
        (format.top, &format.trials),
        groups,
        #[inline(always)]
        |_, x| {
            let rms = (lanes::sum_squares(x) / Lanes::splat(simd, 32.0)).sqrt();
            lanes::map(
                x,
                #[inline(always)]
                |x| rms + x.abs(),
            )
        },
    );
    (round(&fits.scale), round(&fits.m))
}

/// Rounds to multiples of 1/63 of the maximum of each super-block.
#[inline(always)]
fn round(all: &[f32]) -> Scales {
    let (mut d, mut levels) = ([0.0; CHUNK], [[0; 8]; CHUNK]);
    for ((v, d), levels) in all.as_chunks::<8>().0.iter().zip(&mut d).zip(&mut levels) {
        let max = search::largest(v);
        let inverse = if max > 0.0 { 63.0 / max } else { 0.0 };
        *d = max / 63.0;
        for (level, v) in levels.iter_mut().zip(v) {
            // Through u8: a negative scale wraps and is then clamped, as in C.
            *level = (search::nearest(inverse * v) as u8).min(63);
        }
    }
    (d, levels)
}

/// Fits each group, then searches the super-block scales of the scales and of the minimums, one
/// super-block per lane, weighting each group by the sum of its weights.
#[inline(always)]
fn fit_weighted<S: Simd>(
    simd: S,
    format: &Format,
    x: &[[f32; 256]],
    columns: &[[f32; 256]],
    fits: &mut Fits,
) -> (Scales, Scales) {
    let energies = search::sums_of_squares::<256, CHUNK>(x).map(|sum| 2.0 * sum / 256.0);
    let columns = columns.as_flattened().as_chunks::<32>().0;
    let groups = x.as_flattened().as_chunks::<32>().0;
    fits.affine(
        simd,
        (format.top, &search::WEIGHTED),
        groups,
        #[inline(always)]
        |at, x| {
            let energy = |lane: usize| energies[((at + lane) / 8).min(CHUNK - 1)];
            search::emphasize_lanes(simd, &columns[at..], x, energy)
        },
    );
    let (blocks, sums) = (x.len(), fits.weight.as_chunks::<8>().0);
    let (scales, minimums) = (fits.scale.as_chunks::<8>().0, fits.m.as_chunks::<8>().0);
    let (d, mut s) = search::unsigned_groups(simd, 63, &scales[..blocks], sums);
    let (dmin, mut m) = search::unsigned_groups(simd, 63, &minimums[..blocks], sums);
    for level in s.as_flattened_mut().iter_mut().chain(m.as_flattened_mut()) {
        *level = format.limit.min(*level);
    }
    ((d, s), (dmin, m))
}

/// Packs the 12 bytes of the drawing.
#[inline(always)]
fn pack(s: &[u8; 8], m: &[u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for j in 0..4 {
        bytes[j] = s[j] | s[j + 4] >> 4 << 6;
        bytes[j + 4] = m[j] | m[j + 4] >> 4 << 6;
        bytes[j + 8] = s[j + 4] & 15 | m[j + 4] << 4;
    }
    bytes
}

/// Returns the scale and the minimum of group `g`.
#[inline(always)]
pub(super) fn unpack(bytes: &[u8; 12], g: usize) -> (u8, u8) {
    if g < 4 {
        (bytes[g] & 63, bytes[g + 4] & 63)
    } else {
        (bytes[g + 4] & 15 | bytes[g - 4] >> 6 << 4, bytes[g + 4] >> 4 | bytes[g] >> 6 << 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_match_the_drawing() {
        let (s, m) = ([1, 2, 3, 4, 0x15, 0x26, 0x37, 0x08], [63, 5, 6, 7, 0x3a, 0x0b, 0x1c, 0x2d]);
        let bytes = pack(&s, &m);
        assert_eq!(bytes, [0x41, 0x82, 0xc3, 4, 0xff, 5, 0x46, 0x87, 0xa5, 0xb6, 0xc7, 0xd8]);
        for g in 0..8 {
            assert_eq!(unpack(&bytes, g), (s[g], m[g]));
        }
    }
}
