//! Activations in 8 bits.

use std::sync::{Arc, Mutex, PoisonError};

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::prefetch::prefetch;
use crate::scratch::Scratch;
use crate::value::Value;

/// Columns whose numbers stand together: those of all rows, then those of the next columns, so that
/// kernels of tiles read from one place on.
pub(super) const PIECE: usize = 256;

/// Rows of a piece that are asked for ahead: a piece is too short for the processor to see the next one.
const AHEAD: usize = 16;

/// Rows of activations, rounded by blocks: `x = d * a` with a between -127 and 127.
pub(super) struct Rounded {
    pub rows: usize,
    /// Numbers of a row.
    pub width: usize,
    /// Numbers with a scale of their own.
    len: usize,
    group: usize,
    also: Also,
    /// Bytes: levels, or those greater by 128.
    levels: Scratch,
    wide: Vec<i16>,
    scales: Vec<f32>,
    sums: Vec<i16>,
    largest: Vec<u16>,
    #[cfg(target_arch = "x86_64")]
    pairs: Vec<Pairs>,
}

#[cfg(target_arch = "x86_64")]
/// Eight blocks or groups of 32 numbers. Where a row has no more blocks, all are 0.
#[repr(align(32))]
pub(super) struct Pairs {
    /// In the order of [`gguf_quant::integers::IntegerBlock::unpack_paired`].
    pub levels: [i8; 256],
    /// Without their signs.
    pub magnitudes: [u8; 256],
    pub scales: [f32; 8],
    pub sums: [i16; 8],
}

/// What kernels read of activations besides levels, scales and sums.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Also {
    Nothing,
    /// Levels in 16 bits.
    Wide,
    /// [`Rounded::largest`].
    #[cfg(target_arch = "x86_64")]
    Largest,
    /// The same, and levels greater by 128 in place of levels.
    #[cfg(target_arch = "x86_64")]
    Raised,
    /// [`Rounded::pairs`].
    #[cfg(target_arch = "x86_64")]
    Pairs,
}

impl Also {
    /// Whether there is the greatest sum of magnitudes.
    fn sized(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Self::Largest | Self::Raised);
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Whether levels are greater by 128.
    fn raised(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self == Self::Raised;
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// The rounded rows of a value, kept for its further products: of most values there are several.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Arc<Rounded>>>);

impl Kept {
    /// [`Rounded::new`] of the rows that it is for.
    pub(super) fn rounded(&self, x: &Value, len: usize, group: usize, also: Also) -> Arc<Rounded> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept().take_if(|x| (x.len, x.group, x.also) != (len, group, also));
        drop(before);
        if let Some(kept) = &*kept() {
            return Arc::clone(kept);
        }
        let made = Arc::new(Rounded::new(x, len, group, also));
        *kept() = Some(Arc::clone(&made));
        made
    }

    /// Gives the memory back.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Rounded {
    /// Rounds rows by blocks of `len`, and sums groups of `group`.
    pub fn new(x: &Value, len: usize, group: usize, also: Also) -> Self {
        let wide = also == Also::Wide;
        let (rows, width) = (x.rows, x.width);
        let mut made = Self {
            rows,
            width,
            len,
            group,
            also,
            levels: Scratch::new((rows * width).div_ceil(4)),
            wide: vec![0; if wide { rows * width } else { 0 }],
            scales: vec![0.0; rows * (width / len) + 8],
            sums: vec![0; rows * (width / group)],
            largest: vec![0; rows * width.div_ceil(PIECE)],
            #[cfg(target_arch = "x86_64")]
            pairs: Vec::new(),
        };
        let arch = Arch::new();
        let (sized, raised) = (also.sized(), also.raised());
        let levels: &mut [i8] = cast_slice_mut(&mut made.levels);
        let pieces = levels[..rows * width].par_chunks_mut(rows * PIECE);
        let pieces = pieces.zip(made.scales.par_chunks_mut(rows * (PIECE / len)));
        let pieces = pieces.zip(made.sums.par_chunks_mut(rows * (PIECE / group)));
        let pieces = pieces.zip(made.largest.par_chunks_mut(rows));
        // A single row is not worth waking other threads.
        let least = if rows == 1 { usize::MAX } else { 1 };
        pieces.enumerate().with_min_len(least).for_each(
            |(piece, (((levels, scales), sums), largest))| {
                let width = levels.len() / rows;
                let parts = levels.chunks_exact_mut(width);
                let parts = parts.zip(scales.chunks_exact_mut(width / len));
                let parts = parts.zip(sums.chunks_exact_mut(width / group)).zip(largest);
                for (row, (((levels, scales), sums), largest)) in parts.enumerate() {
                    if row + AHEAD < rows {
                        let ahead = &x.row(row + AHEAD)[piece * PIECE..][..width];
                        ahead.chunks(16).for_each(|line| prefetch(line.as_ptr()));
                    }
                    let x = &x.row(row)[piece * PIECE..][..width];
                    arch.dispatch(Round {
                        x,
                        levels,
                        scales,
                        sums,
                        largest,
                        len,
                        group,
                        sized,
                        raised,
                    });
                }
            },
        );
        #[cfg(target_arch = "x86_64")]
        if also == Also::Pairs {
            let columns = (0..width).step_by(PIECE);
            made.pairs = columns
                .flat_map(|column| (0..rows).map(move |row| (row, column)))
                .map(|(row, column)| made.pairs_of(row, column))
                .collect();
        }
        if wide {
            let mut of_all = std::mem::take(&mut made.wide);
            let pieces = of_all.par_chunks_mut(PIECE * rows);
            pieces.zip(made.all().par_chunks(PIECE * rows)).for_each(|(wide, levels)| {
                wide.iter_mut().zip(levels).for_each(|(wide, level)| *wide = i16::from(*level));
            });
            made.wide = of_all;
        }
        made
    }

    #[cfg(target_arch = "x86_64")]
    /// Eight blocks or groups from a column on.
    fn pairs_of(&self, row: usize, column: usize) -> Pairs {
        let mut pairs =
            Pairs { levels: [0; 256], magnitudes: [0; 256], scales: [0.0; 8], sums: [0; 8] };
        let len = PIECE.min(self.width - column);
        let halves = pairs.levels.as_chunks_mut::<16>().0;
        for (n, levels) in self.levels(row, column, len).as_chunks().0.iter().enumerate() {
            let (group, half) = (n / 2, n % 2);
            halves[group % 4 * 4 + half * 2 + group / 4] = *levels;
        }
        pairs.magnitudes = pairs.levels.map(i8::unsigned_abs);
        let (scales, sums) = (self.scales(row, column, len), self.sums(row, column, len));
        pairs.scales[..scales.len()].copy_from_slice(scales);
        pairs.sums[..sums.len()].copy_from_slice(sums);
        pairs
    }

    /// Where a column of a row stands among things of which there is one for `1 << shift` columns.
    #[inline(always)]
    fn place(&self, row: usize, column: usize, shift: u32) -> usize {
        let start = column / PIECE * PIECE;
        let width = PIECE.min(self.width - start);
        (start * self.rows + row * width + (column - start)) >> shift
    }

    /// Numbers of a row from a column on, all within 256 columns.
    #[inline(always)]
    pub fn levels(&self, row: usize, column: usize, len: usize) -> &[i8] {
        &self.all()[self.place(row, column, 0)..][..len]
    }

    /// Those of all rows.
    #[inline(always)]
    fn all(&self) -> &[i8] {
        &cast_slice(&self.levels)[..self.rows * self.width]
    }

    #[cfg(target_arch = "x86_64")]
    /// The columns of all rows from one on that stand together; `column` is a multiple of [`PIECE`].
    #[inline(always)]
    pub fn piece(&self, column: usize) -> Piece<'_> {
        let len = PIECE.min(self.width - column);
        let of_all =
            |shift: u32| (column * self.rows) >> shift..((column + len) * self.rows) >> shift;
        let largest = column / PIECE * self.rows;
        Piece {
            len,
            levels: cast_slice(&self.all()[of_all(0)]),
            scales: &self.scales[of_all(self.len.ilog2())],
            sums: &self.sums[of_all(self.group.ilog2())],
            largest: &self.largest[largest..largest + self.rows],
            shifts: [self.len.ilog2(), self.group.ilog2()],
        }
    }

    #[cfg(target_arch = "x86_64")]
    /// Numbers of a row in 16 bits, if they were asked for.
    #[inline(always)]
    pub fn wide(&self, row: usize, column: usize, len: usize) -> &[i16] {
        &self.wide[self.place(row, column, 0)..][..len]
    }

    /// The scales of the blocks of the same numbers.
    #[inline(always)]
    pub fn scales(&self, row: usize, column: usize, len: usize) -> &[f32] {
        &self.scales[self.place(row, column, self.len.ilog2())..][..len >> self.len.ilog2()]
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    /// What there is of every 256 columns, if that is the length of blocks, and `G` groups in them:
    /// of all rows, then of the next columns.
    #[inline(always)]
    pub fn blocks<const G: usize>(&self) -> Blocks<'_, G> {
        let sums = self.sums.as_chunks().0;
        Blocks { levels: self.all().as_chunks().0, sums }
    }

    #[cfg(target_arch = "x86_64")]
    /// The scales of eight blocks of 256 numbers from a block on. Those behind the end of a row are of
    /// nothing.
    #[inline(always)]
    pub fn eight_scales(&self, row: usize, block: usize) -> [f32; 8] {
        let scales = &self.scales[block * self.rows + row..];
        if self.rows == 1 {
            return *scales.first_chunk().expect("eight more are kept");
        }
        let mut eight = [0.0; 8];
        for (scale, from) in eight.iter_mut().zip(scales.chunks(self.rows)) {
            *scale = from[0];
        }
        eight
    }

    #[cfg(target_arch = "x86_64")]
    /// The first eight blocks or groups of 32 numbers of each row, then the next ones, if they were asked for.
    #[inline(always)]
    pub fn pairs(&self) -> &[Pairs] {
        &self.pairs
    }

    /// The sums of the groups of the same numbers.
    #[inline(always)]
    pub fn sums(&self, row: usize, column: usize, len: usize) -> &[i16] {
        &self.sums[self.place(row, column, self.group.ilog2())..][..len >> self.group.ilog2()]
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
/// Blocks of 256, as [`Rounded::blocks`] has them.
pub(super) struct Blocks<'r, const G: usize> {
    pub levels: &'r [[i8; 256]],
    pub sums: &'r [[i16; G]],
}

/// Columns of all rows that stand together.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Piece<'r> {
    /// How many they are.
    pub len: usize,
    /// Of all rows one after the other, as bytes.
    pub levels: &'r [u8],
    scales: &'r [f32],
    sums: &'r [i16],
    /// Of each row the greatest sum of the magnitudes of a group, if it was asked for.
    pub largest: &'r [u16],
    /// Of the numbers with a scale, and with a sum.
    shifts: [u32; 2],
}

#[cfg(target_arch = "x86_64")]
impl<'r> Piece<'r> {
    /// How many rows there are.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.largest.len()
    }

    /// The levels of a row: without a sign if they are greater by 128.
    #[inline(always)]
    pub fn levels(&self, row: usize) -> &'r [u8] {
        &self.levels[row * self.len..][..self.len]
    }

    /// The scales of its blocks.
    #[inline(always)]
    pub fn scales(&self, row: usize) -> &'r [f32] {
        let count = self.len >> self.shifts[0];
        &self.scales[row * count..][..count]
    }

    /// The sums of its groups.
    #[inline(always)]
    pub fn sums(&self, row: usize) -> &'r [i16] {
        let count = self.len >> self.shifts[1];
        &self.sums[row * count..][..count]
    }
}

/// A piece of a row.
struct Round<'r> {
    x: &'r [f32],
    levels: &'r mut [i8],
    scales: &'r mut [f32],
    sums: &'r mut [i16],
    largest: &'r mut u16,
    len: usize,
    group: usize,
    sized: bool,
    raised: bool,
}

impl WithSimd for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { x, levels, scales, sums, largest, len, group, sized, raised } = self;
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
            let parts = levels.as_chunks::<16>().0;
            *sum = parts.iter().flatten().map(|level| i16::from(*level)).sum();
            if sized {
                let magnitudes =
                    parts.iter().flatten().map(|level| u16::from(level.unsigned_abs()));
                *largest = magnitudes.sum::<u16>().max(*largest);
            }
        }
        if raised {
            levels.iter_mut().for_each(|level| *level ^= i8::MIN);
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
