//! Activations in 8 bits.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::value::Value;

/// Rows of activations, rounded by blocks: `x = d * a` with a between -127 and 127.
pub(super) struct Rounded {
    pub rows: usize,
    /// Numbers of a row.
    pub width: usize,
    /// Numbers with a scale of their own.
    len: usize,
    group: usize,
    levels: Vec<i8>,
    wide: Vec<i16>,
    scales: Vec<f32>,
    sums: Vec<i16>,
}

impl Rounded {
    /// Rounds rows by blocks of `len`, and sums groups of `group`.
    pub fn new(x: &Value, len: usize, group: usize, wide: bool) -> Self {
        let (rows, width) = (x.rows, x.width);
        let mut made = Self {
            rows,
            width,
            len,
            group,
            levels: vec![0; rows * width],
            wide: vec![0; if wide { rows * width } else { 0 }],
            scales: vec![0.0; rows * (width / len)],
            sums: vec![0; rows * (width / group)],
        };
        let round =
            |(((x, levels), scales), sums): (((&[f32], &mut [i8]), &mut [f32]), &mut [i16])| {
                Arch::new().dispatch(Round { x, levels, scales, sums, len, group });
            };
        let parts = made.levels.chunks_exact_mut(width);
        if rows == 1 {
            round((((&x.data, &mut made.levels), &mut made.scales), &mut made.sums));
        } else {
            drop(parts);
            x.data
                .par_chunks_exact(width)
                .zip(made.levels.par_chunks_exact_mut(width))
                .zip(made.scales.par_chunks_exact_mut(width / len))
                .zip(made.sums.par_chunks_exact_mut(width / group))
                .with_min_len(8)
                .for_each(round);
        }
        if wide {
            let rows = made.wide.par_chunks_exact_mut(width);
            rows.zip(made.levels.par_chunks_exact(width)).with_min_len(8).for_each(
                |(wide, levels)| {
                    wide.iter_mut().zip(levels).for_each(|(wide, level)| *wide = i16::from(*level));
                },
            );
        }
        made
    }

    /// The numbers of a row.
    #[inline(always)]
    pub fn levels(&self, row: usize) -> &[i8] {
        &self.levels[row * self.width..][..self.width]
    }

    /// The same in 16 bits, if they were asked for.
    #[inline(always)]
    pub fn wide(&self, row: usize) -> &[i16] {
        &self.wide[row * self.width..][..self.width]
    }

    /// The scales of the blocks of a row.
    #[inline(always)]
    pub fn scales(&self, row: usize) -> &[f32] {
        let blocks = self.width / self.len;
        &self.scales[row * blocks..][..blocks]
    }

    /// The sums of the groups of a row.
    #[inline(always)]
    pub fn sums(&self, row: usize) -> &[i16] {
        let groups = self.width / self.group;
        &self.sums[row * groups..][..groups]
    }
}

/// One row.
struct Round<'r> {
    x: &'r [f32],
    levels: &'r mut [i8],
    scales: &'r mut [f32],
    sums: &'r mut [i16],
    len: usize,
    group: usize,
}

impl WithSimd for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { x, levels, scales, sums, len, group } = self;
        let blocks = x.chunks_exact(len).zip(levels.chunks_exact_mut(len)).zip(scales);
        for ((x, levels), scale) in blocks {
            // As integers, so that NaN is the greatest of all, and spoils the scale.
            let greatest = x.as_chunks::<8>().0.iter().fold([0; 8], |mut greatest: [u32; 8], x| {
                for (greatest, x) in greatest.iter_mut().zip(x) {
                    *greatest = (*greatest).max(x.abs().to_bits());
                }
                greatest
            });
            let greatest = f32::from_bits(greatest.into_iter().fold(0, u32::max));
            *scale = greatest / 127.0;
            // Too small a scale has no reciprocal; what is so small counts as nothing.
            let inverse = if greatest > 1e-36 { 127.0 / greatest } else { 0.0 };
            for (x, level) in x.as_chunks::<32>().0.iter().zip(levels.as_chunks_mut::<32>().0) {
                *level = x.map(
                    #[inline(always)]
                    |x| nearest(x * inverse),
                );
            }
        }
        for (levels, sum) in levels.chunks_exact(group).zip(sums) {
            *sum = levels.as_chunks::<16>().0.iter().flatten().map(|level| i16::from(*level)).sum();
        }
    }
}

/// The nearest integer of at most 127 in magnitude, of two the even one.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    // Where units are the last place, adding rounds.
    const SHIFT: f32 = 12_582_912.0;
    ((x + SHIFT).to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32) as i8
}
