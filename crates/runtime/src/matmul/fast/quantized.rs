//! Activations, quantized to 8 bits.

use std::sync::{Arc, Mutex, PoisonError};

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use super::interleaved::{Interleaved, Lens, SomeRows};
use crate::prefetch::prefetch;
use crate::scratch::Scratch;
use crate::value::Value;

/// Columns of a panel. A panel has these columns of all rows, so that tile kernels read contiguous memory.
pub(super) const PIECE: usize = 256;

/// Prefetch distance in rows: rows of a panel are too short for hardware prefetching.
const AHEAD: usize = 16;

/// Rows of activations, quantized by blocks: `x = d * a` with `a` from -127 to 127.
pub(super) struct Quantized {
    pub rows: usize,
    /// Number of columns.
    pub width: usize,
    /// Block length.
    len: usize,
    group: usize,
    epilogue: Epilogue,
    /// Levels, or levels plus 128, as bytes.
    levels: Scratch,
    scales: Vec<f32>,
    sums: Vec<i16>,
    largest: Vec<u16>,
    #[cfg(target_arch = "x86_64")]
    pairs: Vec<Pairs>,
    #[cfg(target_arch = "x86_64")]
    interleaved: Interleaved,
}

#[cfg(target_arch = "x86_64")]
/// Eight blocks or groups of 32 numbers. Blocks beyond the end of a row are 0.
#[repr(align(32))]
pub(super) struct Pairs {
    /// Levels in the order of [`gguf_quant::integers::IntegerBlock::unpack_paired`].
    pub levels: [i8; 256],
    /// Absolute levels.
    pub magnitudes: [u8; 256],
    pub scales: [f32; 8],
    pub sums: [i16; 8],
}

/// Additional data that quantization computes for a kernel, besides levels, scales and sums.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Epilogue {
    None,
    /// Maximum sum of magnitudes of each row of a panel.
    #[cfg(target_arch = "x86_64")]
    Largest,
    /// Maximum sum of magnitudes, and levels plus 128 in place of levels.
    #[cfg(target_arch = "x86_64")]
    Raised,
    /// Levels and magnitudes in the order of paired unpacking.
    #[cfg(target_arch = "x86_64")]
    Pairs,
    /// Rows interleaved, for [`Quantized::some_rows`].
    #[cfg(target_arch = "x86_64")]
    Interleaved,
}

impl Epilogue {
    /// Returns the additional data for repacked weights.
    #[cfg(target_arch = "x86_64")]
    pub fn of_packed(rows: usize) -> Self {
        if rows == 1 { Self::None } else { Self::Interleaved }
    }

    /// Whether maximum sums of magnitudes are computed.
    fn has_magnitude_sums(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return matches!(self, Self::Largest | Self::Raised);
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Whether 128 is added to levels.
    fn is_raised(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self == Self::Raised;
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// Cache of the quantized rows of a value, which most often several matrices multiply.
#[derive(Default)]
pub(crate) struct QuantizedInput(Mutex<Option<Arc<Quantized>>>);

impl QuantizedInput {
    /// Returns [`Quantized::new`] of the value that the cache is for.
    pub(super) fn get(
        &self,
        x: &Value,
        len: usize,
        group: usize,
        epilogue: Epilogue,
    ) -> Arc<Quantized> {
        let cache = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let other = cache().take_if(|x| (x.len, x.group, x.epilogue) != (len, group, epilogue));
        drop(other);
        if let Some(quantized) = &*cache() {
            return Arc::clone(quantized);
        }
        let quantized = Arc::new(Quantized::new(x, len, group, epilogue));
        *cache() = Some(Arc::clone(&quantized));
        quantized
    }

    /// Frees the memory.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Quantized {
    /// Quantizes rows by blocks of `len`, and sums groups of `group`.
    pub fn new(x: &Value, len: usize, group: usize, epilogue: Epilogue) -> Self {
        let (rows, width) = (x.rows, x.width);
        let mut result = Self {
            rows,
            width,
            len,
            group,
            epilogue,
            levels: Scratch::new((rows * width).div_ceil(4)),
            scales: vec![0.0; rows * (width / len) + 8],
            sums: vec![0; rows * (width / group)],
            largest: vec![0; rows * width.div_ceil(PIECE)],
            #[cfg(target_arch = "x86_64")]
            pairs: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            interleaved: Interleaved::default(),
        };
        let arch = Arch::new();
        let (sized, raised) = (epilogue.has_magnitude_sums(), epilogue.is_raised());
        let levels: &mut [i8] = cast_slice_mut(&mut result.levels);
        let pieces = levels[..rows * width].par_chunks_mut(rows * PIECE);
        let pieces = pieces.zip(result.scales.par_chunks_mut(rows * (PIECE / len)));
        let pieces = pieces.zip(result.sums.par_chunks_mut(rows * (PIECE / group)));
        let pieces = pieces.zip(result.largest.par_chunks_mut(rows));
        // One row stays on one thread.
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
        if epilogue == Epilogue::Pairs {
            let columns = (0..width).step_by(PIECE);
            result.pairs = columns
                .flat_map(|column| (0..rows).map(move |row| (row, column)))
                .map(|(row, column)| result.pairs_of(row, column))
                .collect();
        }
        #[cfg(target_arch = "x86_64")]
        if epilogue == Epilogue::Interleaved {
            let scales = &result.scales[..rows * (width / len)];
            let lens = Lens { panel: PIECE, block: len, group };
            result.interleaved = Interleaved::new(rows, lens, result.all(), scales, &result.sums);
        }
        result
    }

    #[cfg(target_arch = "x86_64")]
    /// Returns eight blocks or groups from a column on.
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

    /// Returns the index of a column among data with one item per `1 << shift` columns.
    #[inline(always)]
    fn place(&self, row: usize, column: usize, shift: u32) -> usize {
        let start = column / PIECE * PIECE;
        let width = PIECE.min(self.width - start);
        (start * self.rows + row * width + (column - start)) >> shift
    }

    /// Returns the levels of a row from a column on, within one panel.
    #[inline(always)]
    pub fn levels(&self, row: usize, column: usize, len: usize) -> &[i8] {
        &self.all()[self.place(row, column, 0)..][..len]
    }

    /// Returns the levels of all rows.
    #[inline(always)]
    fn all(&self) -> &[i8] {
        &cast_slice(&self.levels)[..self.rows * self.width]
    }

    #[cfg(target_arch = "x86_64")]
    /// Returns the panel from a column on; `column` is a multiple of [`PIECE`].
    #[inline(always)]
    pub fn piece(&self, column: usize) -> Piece<'_> {
        let len = PIECE.min(self.width - column);
        let all_levels =
            |shift: u32| (column * self.rows) >> shift..((column + len) * self.rows) >> shift;
        let largest = column / PIECE * self.rows;
        Piece {
            len,
            levels: cast_slice(&self.all()[all_levels(0)]),
            scales: &self.scales[all_levels(self.len.ilog2())],
            sums: &self.sums[all_levels(self.group.ilog2())],
            largest: &self.largest[largest..largest + self.rows],
            shifts: [self.len.ilog2(), self.group.ilog2()],
        }
    }

    /// Returns the scales of the blocks of a row from a column on.
    #[inline(always)]
    pub fn scales(&self, row: usize, column: usize, len: usize) -> &[f32] {
        &self.scales[self.place(row, column, self.len.ilog2())..][..len >> self.len.ilog2()]
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    /// Returns blocks of 256 columns with `G` groups each: of all rows, then of the next columns.
    #[inline(always)]
    pub fn blocks<const G: usize>(&self) -> Blocks<'_, G> {
        let sums = self.sums.as_chunks().0;
        Blocks { levels: self.all().as_chunks().0, sums }
    }

    #[cfg(target_arch = "x86_64")]
    /// Returns the scales of eight blocks of 256 numbers from a block on. Scales beyond the end of a row are
    /// unspecified.
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
    /// Returns groups of eight blocks of each row, then the next ones, if they were computed.
    #[inline(always)]
    pub fn pairs(&self) -> &[Pairs] {
        &self.pairs
    }

    /// Returns some columns of [`interleaved_rows`] rows from `first` on; `column` is a multiple of [`PIECE`].
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn some_rows<const R: usize>(
        &self,
        first: usize,
        column: usize,
        len: usize,
    ) -> SomeRows<'_, R> {
        if R == 1 && self.rows == 1 {
            return SomeRows {
                levels: self.levels(0, column, len).as_chunks().0.as_chunks().0,
                scales: self.scales(0, column, len).as_chunks().0,
                sums: self.sums(0, column, len),
            };
        }
        self.interleaved.some_rows(first, column, len)
    }

    /// Returns the sums of the groups of a row from a column on.
    #[inline(always)]
    pub fn sums(&self, row: usize, column: usize, len: usize) -> &[i16] {
        &self.sums[self.place(row, column, self.group.ilog2())..][..len >> self.group.ilog2()]
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
/// Blocks of 256 numbers, in the order of [`Quantized::blocks`].
pub(super) struct Blocks<'r, const G: usize> {
    pub levels: &'r [[i8; 256]],
    pub sums: &'r [[i16; G]],
}

/// A panel: some columns of all rows.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Piece<'r> {
    /// Number of columns.
    pub len: usize,
    /// Levels of all rows, as bytes.
    pub levels: &'r [u8],
    scales: &'r [f32],
    sums: &'r [i16],
    /// Maximum sum of the magnitudes of a group, per row, if it was computed.
    pub largest: &'r [u16],
    /// Lengths of blocks and of groups.
    shifts: [u32; 2],
}

#[cfg(target_arch = "x86_64")]
impl<'r> Piece<'r> {
    /// Returns the number of rows.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.largest.len()
    }

    /// Returns the scales of the blocks of a row.
    #[inline(always)]
    pub fn scales(&self, row: usize) -> &'r [f32] {
        let count = self.len >> self.shifts[0];
        &self.scales[row * count..][..count]
    }

    /// Returns the sums of the groups of a row.
    #[inline(always)]
    pub fn sums(&self, row: usize) -> &'r [i16] {
        let count = self.len >> self.shifts[1];
        &self.sums[row * count..][..count]
    }
}

/// Quantization of a row of a panel.
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
            // Compared as integers, NaN is the maximum, and the scale becomes NaN.
            let greatest = x.as_chunks::<8>().0.iter().fold([0; 8], |mut greatest: [u32; 8], x| {
                for (greatest, x) in greatest.iter_mut().zip(x) {
                    *greatest = (*greatest).max(x.abs().to_bits());
                }
                greatest
            });
            let greatest = f32::from_bits(greatest.into_iter().fold(0, u32::max));
            *scale = greatest / 127.0;
            // A tiny scale has an infinite reciprocal: such blocks count as 0.
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

/// Returns the nearest integer from -127 to 127, ties to even.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    // Adding a number whose unit in the last place is 1 rounds to an integer.
    const SHIFT: f32 = 12_582_912.0;
    ((x + SHIFT).to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32) as i8
}
