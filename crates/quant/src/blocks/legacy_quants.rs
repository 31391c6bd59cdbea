//! The row encoders that the legacy quants share: Q4_0 with Q5_0, and Q4_1 with Q5_1.

use half::f16;
use pulp::Simd;

use crate::block::Row;
use crate::lanes;
use crate::search::{self, Fits};

/// Encodes blocks `x = d * (q - half)`; `pack` packs the scale and the levels of a block.
#[inline(always)]
pub(super) fn encode_symmetric<S: Simd, const BYTES: usize>(
    simd: S,
    half: u8,
    row: Row<32>,
    out: &mut [[u8; BYTES]],
    pack: impl Fn([u8; 2], &[u8; 32]) -> [u8; BYTES],
) {
    if row.columns.is_none() {
        for (x, out) in row.x.chunks(search::BATCH).zip(out.chunks_mut(search::BATCH)) {
            let found = search::offset_levels(simd, half, x);
            for ((out, d), q) in out.iter_mut().zip(found.scale).zip(&found.levels) {
                *out = pack(d, q);
            }
        }
        return;
    }
    let half = i32::from(half);
    for (row, out) in row.chunks(search::MAX_GROUPS).zip(out.chunks_mut(search::MAX_GROUPS)) {
        let mut fits = Fits::new();
        fits.symmetric(
            simd,
            half,
            row.x,
            #[inline(always)]
            |at, x| search::emphasize_by_rows(simd, row, at, x),
        );
        for (g, (x, out)) in row.x.iter().zip(out).enumerate() {
            let mut q = [0.0; 32];
            fits.symmetric_levels(simd, (half, g), x, &mut q);
            let q = lanes::bytes(&q);
            *out = pack(f16::from_f32(fits.scale[g]).to_le_bytes(), &q);
        }
    }
}

/// Encodes blocks `x = d * q + m` with levels `0..=top`; `pack` packs the scale, the minimum and the
/// levels of a block.
#[inline(always)]
pub(super) fn encode_affine<S: Simd, const BYTES: usize>(
    simd: S,
    top: u8,
    row: Row<32>,
    out: &mut [[u8; BYTES]],
    pack: impl Fn([u8; 2], [u8; 2], &[u8; 32]) -> [u8; BYTES],
) {
    if row.columns.is_none() {
        for (x, out) in row.x.chunks(search::BATCH).zip(out.chunks_mut(search::BATCH)) {
            let found = search::spread_levels(simd, top, x);
            for (b, out) in out.iter_mut().enumerate() {
                *out = pack(found.scale[b], found.min[b], &found.levels[b]);
            }
        }
        return;
    }
    let top = i32::from(top);
    for (row, out) in row.chunks(search::MAX_GROUPS).zip(out.chunks_mut(search::MAX_GROUPS)) {
        let mut fits = Fits::new();
        fits.affine(
            simd,
            (top, &search::WEIGHTED),
            row.x,
            #[inline(always)]
            |at, x| search::emphasize_by_rows(simd, row, at, x),
        );
        for (g, (x, out)) in row.x.iter().zip(out).enumerate() {
            let mut q = [0.0; 32];
            fits.affine_levels(simd, (top, g), x, &mut q);
            let q = lanes::bytes(&q);
            let (d, m) = (f16::from_f32(fits.scale[g]), f16::from_f32(-fits.m[g]));
            *out = pack(d.to_le_bytes(), m.to_le_bytes(), &q);
        }
    }
}
