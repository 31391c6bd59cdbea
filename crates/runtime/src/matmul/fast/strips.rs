//! Products of repacked rows with some tokens.

use std::marker::PhantomData;

use pulp::NullaryFnOnce;

use super::ROWS;
use super::interleaved::{SomeRows, TOGETHER, interleaved_rows};
use super::packed::unit_bytes;
use super::quantized::Quantized;
use super::tile::DEPTH;
use crate::repack::{PackedFormat, ScaleType};

/// Storage of levels.
pub(super) trait Levels {
    /// Bits of a level, or of its index in the table of the format.
    const BITS: usize;
    const TABLE: bool;
    /// Upper bound of levels.
    const TOP: i32;
}

pub(super) struct Direct<const BITS: usize>;

impl<const BITS: usize> Levels for Direct<BITS> {
    const BITS: usize = BITS;
    const TABLE: bool = false;
    const TOP: i32 = (1 << BITS) - 1;
}

pub(super) struct Indexed<const BITS: usize, const TOP: i32>;

impl<const BITS: usize, const TOP: i32> Levels for Indexed<BITS, TOP> {
    const BITS: usize = BITS;
    const TABLE: bool = true;
    const TOP: i32 = TOP;
}

/// Instructions on one number per row of a strip.
pub(super) trait Lanes: Copy {
    type Integers: Copy;
    type Floats: Copy;
    /// Two INT16 numbers per row.
    type Pairs: Copy;
    /// An integer scale per row.
    type Scales: Copy;
    type Table: Copy;

    /// Prefetch distance in bytes.
    const AHEAD: usize;
    /// Whether kernels depend on the upper bound of levels.
    const BOUNDED: bool;

    /// Whether [`Lanes::group`] subtracts the level of the weight 0 from levels. Otherwise sums are corrected for it.
    fn subtracts_zero<L: Levels>() -> bool;

    /// Calls a function compiled for these instructions, with everything that is inlined into it.
    fn vectorize<W: NullaryFnOnce>(self, work: W) -> W::Output;

    /// Returns the number of tokens from which on chunks are prefetched.
    fn prefetch_from(self) -> usize;

    fn prefetch(self, line: *const u8);

    fn table<L: Levels>(self, format: &PackedFormat) -> Self::Table;

    fn integers(self, number: i32) -> Self::Integers;

    fn floats(self, number: f32) -> Self::Floats;

    fn read_fp16(self, halves: &[[u8; 2]; ROWS]) -> Self::Floats;

    fn read_bf16(self, halves: &[[u8; 2]; ROWS]) -> Self::Floats;

    fn read_fp32(self, floats: &[[u8; 4]; ROWS]) -> Self::Floats;

    fn to_floats(self, integers: Self::Integers) -> Self::Floats;

    fn rows(self, floats: Self::Floats) -> [f32; ROWS];

    fn signed_pairs(self, pairs: &[[u8; 2]; ROWS]) -> Self::Pairs;

    fn unsigned_pairs(self, pairs: &[[u8; 2]; ROWS]) -> Self::Pairs;

    /// Returns the scales of two groups.
    fn scales(self, pairs: Self::Pairs) -> [Self::Scales; 2];

    /// Adds the two products of a pair of each row with a pair of activations.
    fn add_pairs(self, sums: Self::Integers, pairs: Self::Pairs, x: [i16; 2]) -> Self::Integers;

    fn add_integers(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;

    fn subtract_integers(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;

    fn multiply_integers(self, a: Self::Integers, b: Self::Integers) -> Self::Integers;

    fn add_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    fn subtract_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    fn multiply_floats(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;

    /// Returns the products of `UNITS` times 16 columns with `T` tokens, times `scales` if there are any.
    fn group<L: Levels, const UNITS: usize, const T: usize>(
        self,
        table: Self::Table,
        units: &[u8],
        x: &[[[i8; 16]; T]],
        scales: Option<Self::Scales>,
    ) -> [Self::Integers; T];
}

/// Strips with rows of activations: `out` has a row per row of weights.
pub(super) struct Strips<'r, S> {
    pub simd: S,
    pub format: &'r PackedFormat,
    pub strips: &'r [u8],
    pub x: &'r Quantized,
    pub out: &'r mut [f32],
}

impl<S: Lanes> Strips<'_, S> {
    /// Multiplies them strip by strip.
    pub fn multiply(self) {
        match (self.format.bits, self.format.is_plain(), self.format.top) {
            (2, true, _) => self.with_levels::<Direct<2>>(),
            (2, false, _) => self.with_levels::<Indexed<2, 128>>(),
            (3, true, _) => self.with_levels::<Direct<3>>(),
            (3, false, _) => self.with_levels::<Indexed<3, 128>>(),
            (4, true, _) => self.with_levels::<Direct<4>>(),
            (4, false, ..=32) if const { S::BOUNDED } => self.with_levels::<Indexed<4, 32>>(),
            (4, false, ..=128) if const { S::BOUNDED } => self.with_levels::<Indexed<4, 128>>(),
            (4, false, _) => self.with_levels::<Indexed<4, 255>>(),
            (5, ..) => self.with_levels::<Direct<5>>(),
            (6, ..) => self.with_levels::<Direct<6>>(),
            _ => self.with_levels::<Direct<8>>(),
        }
    }

    fn with_levels<L: Levels>(self) {
        let Self { simd, format, mut strips, x, out } = self;
        let tokens = x.rows;
        for out in out.chunks_mut(ROWS * tokens) {
            let mut rest = strips;
            // The strip stays in the first-level cache.
            for first in (0..tokens).step_by(TOGETHER) {
                let strip = Strip { simd, format, x, strips, first, out: &mut *out };
                rest = match (interleaved_rows(tokens - first), format.group) {
                    (1, 16) => strip.multiply::<L, 1, 1>(),
                    (1, _) => strip.multiply::<L, 2, 1>(),
                    (2, 16) => strip.multiply::<L, 1, 2>(),
                    (2, _) => strip.multiply::<L, 2, 2>(),
                    (4, 16) => strip.multiply::<L, 1, 4>(),
                    (4, _) => strip.multiply::<L, 2, 4>(),
                    (_, 16) => strip.multiply::<L, 1, TOGETHER>(),
                    _ => strip.multiply::<L, 2, TOGETHER>(),
                };
            }
            strips = rest;
        }
    }
}

/// A strip and those after it, and the first of some tokens.
struct Strip<'r, 'o, S> {
    simd: S,
    format: &'r PackedFormat,
    x: &'r Quantized,
    strips: &'r [u8],
    first: usize,
    /// A row per row of weights.
    out: &'o mut [f32],
}

impl<'r, S: Lanes> Strip<'r, '_, S> {
    /// Multiplies groups of `UNITS` times 16 columns by up to `T` tokens. Returns the strips after it.
    fn multiply<L: Levels, const UNITS: usize, const T: usize>(self) -> &'r [u8] {
        self.simd.vectorize(OneStrip::<S, L, UNITS, T>(self, PhantomData))
    }
}

/// [`Strip::multiply`]. One function for all parameters would take several times as long to compile.
struct OneStrip<'r, 'o, S, L, const UNITS: usize, const T: usize>(
    Strip<'r, 'o, S>,
    PhantomData<fn() -> L>,
);

impl<'r, S: Lanes, L: Levels, const UNITS: usize, const T: usize> NullaryFnOnce
    for OneStrip<'r, '_, S, L, UNITS, T>
{
    type Output = &'r [u8];

    #[inline(always)]
    fn call(self) -> &'r [u8] {
        let Strip { simd, format, x, mut strips, first, out } = self.0;
        let table = simd.table::<L>(format);
        let mut sums = [simd.floats(0.0); T];
        for (p, (columns, bytes)) in format.pieces().enumerate() {
            let (piece, rest) = strips.split_at(bytes);
            strips = rest;
            let piece =
                Piece { simd, format, x, table, column: p * DEPTH, columns, bytes: piece, first };
            if format.len == 256 {
                piece.large::<L, UNITS, T>(&mut sums);
            } else {
                piece.small::<L, T>(&mut sums);
            }
        }
        for t in 0..T.min(x.rows - first) {
            for (out, sum) in out.chunks_exact_mut(x.rows).zip(simd.rows(sums[t])) {
                out[first + t] = sum;
            }
        }
        strips
    }
}

/// A piece and its activations.
struct Piece<'r, S: Lanes> {
    simd: S,
    format: &'r PackedFormat,
    x: &'r Quantized,
    table: S::Table,
    /// First column.
    column: usize,
    columns: usize,
    bytes: &'r [u8],
    /// First token.
    first: usize,
}

impl<'r, S: Lanes> Piece<'r, S> {
    /// Adds the products of a block of 256.
    #[inline(always)]
    fn large<L: Levels, const UNITS: usize, const T: usize>(&self, out: &mut [S::Floats; T]) {
        let Self { simd, format, table, .. } = *self;
        let x: SomeRows<'_, T> = self.x.some_rows(self.first, self.column, DEPTH);
        // With known lengths the compiler omits bounds checks.
        let levels = &x.levels[..DEPTH / 16];
        let sums = &x.sums.as_chunks::<2>().0.as_chunks::<T>().0[..8 / UNITS];
        let mut level_sums = [simd.integers(0); T];
        // Of minimums, or of scales, whose products with the level of 0 are subtracted.
        let mut minimum_sums = [simd.integers(0); T];
        for (pair, chunk) in self.chunks::<L, T>(8 / UNITS, 2 * UNITS).enumerate() {
            let pairs = simd.signed_pairs(of_rows(chunk.scales));
            let scales = simd.scales(pairs);
            let of_units = chunk.levels.split_at(UNITS * unit_bytes(L::BITS));
            for (g, units) in [of_units.0, of_units.1].into_iter().enumerate() {
                let x = &levels[(2 * pair + g) * UNITS..][..UNITS];
                let result = simd.group::<L, UNITS, T>(table, units, x, Some(scales[g]));
                for t in 0..T {
                    level_sums[t] = simd.add_integers(level_sums[t], result[t]);
                }
            }
            if format.minimums {
                let minimums = simd.unsigned_pairs(of_rows(chunk.minimums));
                for t in 0..T {
                    minimum_sums[t] = simd.add_pairs(minimum_sums[t], minimums, sums[pair][t]);
                }
            } else if !S::subtracts_zero::<L>() {
                for t in 0..T {
                    minimum_sums[t] = simd.add_pairs(minimum_sums[t], pairs, sums[pair][t]);
                }
            }
        }
        if !format.minimums && !S::subtracts_zero::<L>() {
            let zero = simd.integers(i32::from(format.zero));
            for t in 0..T {
                let less = simd.multiply_integers(minimum_sums[t], zero);
                level_sums[t] = simd.subtract_integers(level_sums[t], less);
            }
        }
        let [d, dmin] = format.head();
        let (d, rest) = self.bytes.split_at(d);
        self.add::<T>([d, &rest[..dmin]], level_sums, minimum_sums, &x.scales[0], out);
    }

    /// Adds the products of blocks of 32.
    #[inline(always)]
    fn small<L: Levels, const T: usize>(&self, out: &mut [S::Floats; T]) {
        let Self { simd, format, table, columns, .. } = *self;
        let x: SomeRows<'_, T> = self.x.some_rows(self.first, self.column, columns);
        let levels = x.levels[..columns / 16].as_chunks::<2>().0;
        let sums = x.sums.as_chunks::<T>().0;
        let blocks = self.chunks::<L, T>(columns / 32, 2);
        let blocks = blocks.zip(levels).zip(sums.iter().zip(x.scales));
        for ((chunk, levels), (sums, x_d)) in blocks {
            let mut level_sums = simd.group::<L, 2, T>(table, chunk.levels, levels, None);
            let mut minimum_sums = [simd.integers(0); T];
            for t in 0..T {
                let sum = i32::from(sums[t]);
                minimum_sums[t] = simd.integers(sum);
                if !S::subtracts_zero::<L>() {
                    let less = simd.integers(sum * i32::from(format.zero));
                    level_sums[t] = simd.subtract_integers(level_sums[t], less);
                }
            }
            let scales = [chunk.scales, chunk.minimums];
            self.add::<T>(scales, level_sums, minimum_sums, x_d, out);
        }
    }

    /// Returns `count` chunks, which have `units` times 16 columns each, and prefetches later ones.
    #[inline(always)]
    fn chunks<L: Levels, const T: usize>(
        &self,
        count: usize,
        units: usize,
    ) -> impl Iterator<Item = Chunk<'r>> + use<'r, S, L, T> {
        let simd = self.simd;
        let [scales, minimums, levels] = self.format.chunk();
        let mut rest = &self.bytes[self.format.head().into_iter().sum()..];
        let prefetches = T >= simd.prefetch_from();
        // Not `chunks_exact`, which divides.
        (0..count).map(
            #[inline(always)]
            move |_| {
                let (chunk, after) = rest.split_at(scales + minimums + levels);
                rest = after;
                if prefetches {
                    let later = chunk.as_ptr().wrapping_add(S::AHEAD);
                    for line in (0..chunk.len()).step_by(64) {
                        simd.prefetch(later.wrapping_add(line));
                    }
                }
                let (scales, chunk) = chunk.split_at(scales);
                let (minimums, levels) = chunk.split_at(minimums);
                // With a known length the compiler omits bounds checks.
                Chunk { scales, minimums, levels: &levels[..units * unit_bytes(L::BITS)] }
            },
        )
    }

    /// Scales and adds the sums of a block.
    #[inline(always)]
    fn add<const T: usize>(
        &self,
        [d, dmin]: [&[u8]; 2],
        level_sums: [S::Integers; T],
        minimum_sums: [S::Integers; T],
        x_d: &[f32; T],
        out: &mut [S::Floats; T],
    ) {
        let Self { simd, format, .. } = *self;
        let d = self.scales(d);
        for t in 0..T {
            let x_d = simd.floats(x_d[t]);
            let levels = simd.to_floats(level_sums[t]);
            let mut part = simd.multiply_floats(simd.multiply_floats(d, x_d), levels);
            if format.minimums {
                let dmin = simd.multiply_floats(self.scales(dmin), x_d);
                let less = simd.multiply_floats(dmin, simd.to_floats(minimum_sums[t]));
                part = simd.subtract_floats(part, less);
            }
            out[t] = simd.add_floats(out[t], part);
        }
    }

    /// Returns the scales of a block of all rows.
    #[inline(always)]
    fn scales(&self, scales: &[u8]) -> S::Floats {
        match self.format.scales {
            ScaleType::Fp16 => self.simd.read_fp16(of_rows(scales)),
            ScaleType::Bf16 => self.simd.read_bf16(of_rows(scales)),
            ScaleType::Fp32 => self.simd.read_fp32(of_rows(scales)),
        }
    }
}

/// Parts of a chunk.
struct Chunk<'r> {
    scales: &'r [u8],
    minimums: &'r [u8],
    levels: &'r [u8],
}

/// Returns `N` bytes of each row.
#[inline(always)]
fn of_rows<const N: usize>(bytes: &[u8]) -> &[[u8; N]; ROWS] {
    &bytes.as_chunks::<N>().0.as_chunks::<ROWS>().0[0]
}
