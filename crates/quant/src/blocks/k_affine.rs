//! What Q4_K and Q5_K share: super-blocks of 256 weights in 8 groups of 32, each with a 6-bit scale
//! `s[g]` and a 6-bit minimum `m[g]`.
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

use super::Weights;
use crate::search::{self, Trials};

/// A super-block before its levels are packed.
pub(super) struct SuperBlock {
    pub d: f16,
    pub dmin: f16,
    pub scales: [u8; 12],
    pub levels: [u8; 256],
}

/// Where the two formats differ.
pub(super) struct Format {
    /// The largest level.
    pub top: i32,
    /// The scales to try without importance weights.
    pub trials: Trials,
    /// The largest scale or minimum with importance weights. The search can wrap a negative one to
    /// more than the 6 bits hold; only the official encoder of Q5_K then limits it to 63.
    pub limit: u8,
}

/// Finds scales, minima and levels.
pub(super) fn encode(format: &Format, x: &[f32; 256], weights: Option<Weights<256>>) -> SuperBlock {
    let mut levels = [0; 256];
    let (d, dmin, scales) = match weights {
        None => fit(format, x, &mut levels),
        Some(w) => fit_weighted(format, x, w.columns, &mut levels),
    };
    let (d, dmin) = (f16::from_f32(d), f16::from_f32(dmin));
    // The groups were fitted with exact scales; the levels must suit the rounded ones.
    let (exact_d, exact_dmin) = (d.to_f32(), dmin.to_f32());
    for (g, (x, levels)) in x.chunks_exact(32).zip(levels.chunks_exact_mut(32)).enumerate() {
        let (s, m) = unpack(&scales, g);
        search::round_affine(
            format.top,
            x,
            exact_d * f32::from(s),
            exact_dmin * f32::from(m),
            levels,
        );
    }
    SuperBlock { d, dmin, scales, levels }
}

/// Fits each group by itself, then rounds scales and minima to 63rds of the largest.
fn fit(format: &Format, x: &[f32; 256], levels: &mut [u8; 256]) -> (f32, f32, [u8; 12]) {
    let (mut scales, mut mins) = ([0.0; 8], [0.0; 8]);
    let groups = x.as_chunks::<32>().0.iter().zip(levels.as_chunks_mut().0);
    for ((x, levels), (scale, min)) in groups.zip(scales.iter_mut().zip(&mut mins)) {
        let rms = (search::sum_squares(x) / 32.0).sqrt();
        let weights = x.map(|x| rms + x.abs());
        (*scale, *min) = search::affine(format.top, x, &weights, &format.trials, levels);
    }
    let largest = |v: &[f32]| v.iter().fold(0.0, |max, &v| if v > max { v } else { max });
    let (max_scale, max_min): (f32, f32) = (largest(&scales), largest(&mins));
    // Through u8: a negative scale wraps and then counts as too large, as in C.
    let round = |v: [f32; 8], max: f32| {
        let inverse = if max > 0.0 { 63.0 / max } else { 0.0 };
        v.map(|v| (search::nearest(inverse * v) as u8).min(63))
    };
    let packed = pack(&round(scales, max_scale), &round(mins, max_min));
    (max_scale / 63.0, max_min / 63.0, packed)
}

/// Fits each group with importance weights, then searches the scale of the scales (and of the
/// minima) too, each group counting by the sum of its weights.
fn fit_weighted(
    format: &Format,
    x: &[f32; 256],
    importance: &[f32; 256],
    levels: &mut [u8; 256],
) -> (f32, f32, [u8; 12]) {
    let energy = 2.0 * search::sum_squares(x) / 256.0;
    let (mut scales, mut mins, mut sums) = ([0.0; 8], [0.0; 8], [0.0; 8]);
    let groups = x.as_chunks::<32>().0.iter().zip(importance.as_chunks().0);
    for (g, ((x, importance), levels)) in groups.zip(levels.as_chunks_mut().0).enumerate() {
        let weights = search::emphasize(importance, x, energy);
        sums[g] = search::sum(&weights);
        (scales[g], mins[g]) = search::affine(format.top, x, &weights, &search::WEIGHTED, levels);
    }
    let (mut s, mut m) = ([0; 8], [0; 8]);
    let d = search::unsigned(63, &scales, &sums, &mut s);
    let dmin = search::unsigned(63, &mins, &sums, &mut m);
    let limited = |v: [u8; 8]| v.map(|v| v.min(format.limit));
    (d, dmin, pack(&limited(s), &limited(m)))
}

/// The 12 bytes of the drawing.
fn pack(s: &[u8; 8], m: &[u8; 8]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for j in 0..4 {
        bytes[j] = s[j] | s[j + 4] >> 4 << 6;
        bytes[j + 4] = m[j] | m[j + 4] >> 4 << 6;
        bytes[j + 8] = s[j + 4] & 15 | m[j + 4] << 4;
    }
    bytes
}

/// Scale and minimum of group `g`.
#[inline]
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
    fn scales_stand_where_the_drawing_says() {
        let (s, m) = ([1, 2, 3, 4, 0x15, 0x26, 0x37, 0x08], [63, 5, 6, 7, 0x3a, 0x0b, 0x1c, 0x2d]);
        let bytes = pack(&s, &m);
        assert_eq!(bytes, [0x41, 0x82, 0xc3, 4, 0xff, 5, 0x46, 0x87, 0xa5, 0xb6, 0xc7, 0xd8]);
        for g in 0..8 {
            assert_eq!(unpack(&bytes, g), (s[g], m[g]));
        }
    }
}
