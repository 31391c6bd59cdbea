//! Packed rows with a few tokens.
#![expect(clippy::needless_range_loop, reason = "tokens count through several arrays")]

use std::arch::x86_64::{__m512, __m512i};

use pulp::{NullaryFnOnce, cast};

use super::super::packed::{Form, Piece, QUAD};
use super::super::rounded::Rounded;
use super::super::tile::DEPTH;
use super::super::{FEW, ROWS};
use super::tiles::Sums;
use crate::avx512::V4Products;

/// Bytes from what is read to what is asked for.
const AHEAD: usize = 12288;

/// Strips with up to [`FEW`] rows of activations: `out` has a row for each row of weights.
pub(super) struct Strips<'r> {
    pub simd: V4Products,
    pub form: &'r Form,
    pub strips: &'r [u8],
    pub x: &'r Rounded,
    pub out: &'r mut [f32],
}

impl NullaryFnOnce for Strips<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        match (self.form.bits, self.form.plain()) {
            (2, true) => self.of_bits::<2, false>(),
            (2, false) => self.of_bits::<2, true>(),
            (3, true) => self.of_bits::<3, false>(),
            (3, false) => self.of_bits::<3, true>(),
            (4, true) => self.of_bits::<4, false>(),
            (4, false) => self.of_bits::<4, true>(),
            (5, _) => self.of_bits::<5, false>(),
            (6, _) => self.of_bits::<6, false>(),
            _ => self.of_bits::<8, false>(),
        }
    }
}

impl Strips<'_> {
    #[inline(always)]
    fn of_bits<const BITS: usize, const TABLE: bool>(self) {
        match (self.x.rows, self.form.group) {
            (1, 16) => self.multiply::<BITS, TABLE, 1, 1>(),
            (1, _) => self.multiply::<BITS, TABLE, 2, 1>(),
            (_, 16) => self.multiply::<BITS, TABLE, 1, FEW>(),
            _ => self.multiply::<BITS, TABLE, 2, FEW>(),
        }
    }

    /// With groups of `UNITS` times 16 columns, and up to `T` tokens.
    #[inline(always)]
    fn multiply<const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(self) {
        let Self { simd, form, strips, x, out } = self;
        let table = simd.avx512f._mm512_broadcast_i32x4(cast(form.table));
        let tokens = if T == 1 { 1 } else { x.rows };
        let (mut strips, mut outs) = (strips, out.chunks_mut(ROWS * tokens));
        for out in &mut outs {
            let mut sums = [simd.avx512f._mm512_setzero_ps(); T];
            for (p, (columns, bytes)) in form.pieces().enumerate() {
                let (piece, rest) = strips.split_at(bytes);
                strips = rest;
                let part =
                    Part { bytes: piece, simd, form, x, table, column: p * DEPTH, columns, tokens };
                let piece = form.piece(columns, piece);
                if form.len == 256 {
                    part.large::<BITS, TABLE, UNITS, T>(&piece, &mut sums);
                } else {
                    part.small::<BITS, TABLE, T>(&piece, &mut sums);
                }
            }
            for t in 0..tokens {
                let sums: [f32; ROWS] = cast(sums[t]);
                for (out, sum) in out.chunks_exact_mut(tokens).zip(sums) {
                    out[t] = sum;
                }
            }
        }
    }
}

/// A piece, and what it is multiplied with.
struct Part<'r> {
    simd: V4Products,
    form: &'r Form,
    x: &'r Rounded,
    table: __m512i,
    /// The first column.
    column: usize,
    columns: usize,
    /// What stands there.
    bytes: &'r [u8],
    tokens: usize,
}

impl Part<'_> {
    /// Adds the products of a block of 256.
    #[inline(always)]
    fn large<const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(
        &self,
        piece: &Piece<'_>,
        out: &mut [__m512; T],
    ) {
        let Self { simd, form, .. } = *self;
        let f = simd.avx512f;
        let mut levels: [&[[i8; 16]]; T] = [&[]; T];
        let mut sums: [&[[i16; 2]]; T] = [&[]; T];
        let mut x_d: [&[f32]; T] = [&[]; T];
        for t in 0..T {
            levels[t] = self.x.levels(self.token(t), self.column, DEPTH).as_chunks().0;
            sums[t] = self.x.sums(self.token(t), self.column, DEPTH).as_chunks().0;
            x_d[t] = self.x.scales(self.token(t), self.column, DEPTH);
        }
        let mut of_levels = [f._mm512_setzero_si512(); T];
        let mut of_scales = [f._mm512_setzero_si512(); T];
        let planes = Planes::<BITS>::of(piece, DEPTH / 16);
        let of_pairs = &piece.scales.as_chunks::<32>().0[..8 / UNITS];
        for pair in 0..8 / UNITS {
            let scales = simd.avx512bw._mm512_cvtepi8_epi16(cast(of_pairs[pair]));
            let of_group = [
                f._mm512_srai_epi32::<16>(f._mm512_slli_epi32::<16>(scales)),
                f._mm512_srai_epi32::<16>(scales),
            ];
            for (g, scales) in of_group.into_iter().enumerate() {
                let made = self.group::<BITS, TABLE, UNITS, T>(&planes, 2 * pair + g, &levels);
                for t in 0..T {
                    let scaled = f._mm512_mullo_epi32(made[t], scales);
                    of_levels[t] = f._mm512_add_epi32(of_levels[t], scaled);
                }
            }
            if form.zero != 0 {
                for t in 0..T {
                    let sums = f._mm512_set1_epi32(cast(sums[t][pair]));
                    of_scales[t] = simd.add_pairs(of_scales[t], scales, sums);
                }
            }
        }
        let mut of_minimums = [f._mm512_setzero_si512(); T];
        for (pair, minimums) in piece.minimums.as_chunks::<32>().0.iter().enumerate() {
            let minimums = simd.avx512bw._mm512_cvtepu8_epi16(cast(*minimums));
            for t in 0..T {
                let sums = f._mm512_set1_epi32(cast(sums[t][pair]));
                of_minimums[t] = simd.add_pairs(of_minimums[t], minimums, sums);
            }
        }
        if form.zero != 0 {
            let zero = f._mm512_set1_epi32(i32::from(form.zero));
            for t in 0..T {
                let less = f._mm512_mullo_epi32(of_scales[t], zero);
                of_levels[t] = f._mm512_sub_epi32(of_levels[t], less);
            }
        }
        self.add::<T>(piece, 0, of_levels, of_minimums, &x_d, out);
    }

    /// Adds the products of blocks of 32.
    #[inline(always)]
    fn small<const BITS: usize, const TABLE: bool, const T: usize>(
        &self,
        piece: &Piece<'_>,
        out: &mut [__m512; T],
    ) {
        let Self { simd, form, columns, .. } = *self;
        let f = simd.avx512f;
        let mut levels: [&[[i8; 16]]; T] = [&[]; T];
        let mut sums: [&[i16]; T] = [&[]; T];
        let mut x_d: [&[f32]; T] = [&[]; T];
        for t in 0..T {
            levels[t] = self.x.levels(self.token(t), self.column, columns).as_chunks().0;
            sums[t] = self.x.sums(self.token(t), self.column, columns);
            x_d[t] = self.x.scales(self.token(t), self.column, columns);
        }
        let planes = Planes::<BITS>::of(piece, columns / 16);
        for block in 0..columns / 32 {
            let mut of_levels = self.group::<BITS, TABLE, 2, T>(&planes, block, &levels);
            let mut of_minimums = [f._mm512_setzero_si512(); T];
            for t in 0..T {
                let sum = i32::from(sums[t][block]);
                of_minimums[t] = f._mm512_set1_epi32(sum);
                let less = f._mm512_set1_epi32(sum * i32::from(form.zero));
                of_levels[t] = f._mm512_sub_epi32(of_levels[t], less);
            }
            self.add::<T>(piece, block, of_levels, of_minimums, &x_d, out);
        }
    }

    /// The token that stands for one that may not be there.
    #[inline(always)]
    fn token(&self, t: usize) -> usize {
        t.min(self.tokens - 1)
    }

    /// Brings what is some pieces further into the second-level cache, a part of it with each group: what it takes with its scales.
    #[inline(always)]
    fn prefetch<const BITS: usize, const UNITS: usize>(&self, group: usize) {
        let share = UNITS * BITS * QUAD / 2 + 48;
        let lines = self.bytes.as_ptr().cast::<i8>().wrapping_add(AHEAD + group * share);
        for line in (0..share).step_by(64) {
            let line = lines.wrapping_add(line);
            self.simd.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line);
        }
    }

    /// The products of a group.
    #[inline(always)]
    fn group<const BITS: usize, const TABLE: bool, const UNITS: usize, const T: usize>(
        &self,
        planes: &Planes<'_, BITS>,
        group: usize,
        x: &[&[[i8; 16]]; T],
    ) -> Sums<T> {
        let simd = self.simd;
        let mut sums = [simd.avx512f._mm512_setzero_si512(); T];
        self.prefetch::<BITS, UNITS>(group);
        for unit in UNITS * group..UNITS * (group + 1) {
            let mut weights = planes.unit(simd, unit);
            if TABLE {
                weights = weights.map(
                    #[inline(always)]
                    |weights| simd.avx512bw._mm512_shuffle_epi8(self.table, weights),
                );
            }
            for t in 0..T {
                let x: [i32; 4] = cast(x[t][unit]);
                for (x, weights) in x.into_iter().zip(weights) {
                    let x = simd.avx512f._mm512_set1_epi32(x);
                    sums[t] = simd.add_bytes(sums[t], weights, x);
                }
            }
        }
        sums
    }

    /// Scales the sums of a block, and adds them.
    #[inline(always)]
    fn add<const T: usize>(
        &self,
        piece: &Piece<'_>,
        block: usize,
        of_levels: Sums<T>,
        of_minimums: Sums<T>,
        x_d: &[&[f32]; T],
        out: &mut [__m512; T],
    ) {
        let Self { simd, form, .. } = *self;
        let f = simd.avx512f;
        let d = self.scales(piece.d, block);
        for t in 0..T {
            let x_d = f._mm512_set1_ps(x_d[t][block]);
            let mut part =
                f._mm512_mul_ps(f._mm512_mul_ps(d, x_d), f._mm512_cvtepi32_ps(of_levels[t]));
            if form.minimums {
                let dmin = f._mm512_mul_ps(self.scales(piece.dmin, block), x_d);
                let less = f._mm512_mul_ps(dmin, f._mm512_cvtepi32_ps(of_minimums[t]));
                part = f._mm512_sub_ps(part, less);
            }
            out[t] = f._mm512_add_ps(out[t], part);
        }
    }

    /// Scales of a block of all rows.
    #[inline(always)]
    fn scales(&self, scales: &[u8], block: usize) -> __m512 {
        if self.form.halves {
            let halves = scales.as_chunks::<{ 2 * ROWS }>().0[block];
            self.simd.avx512f._mm512_cvtph_ps(cast(halves))
        } else {
            cast(scales.as_chunks::<{ 4 * ROWS }>().0[block])
        }
    }
}

/// Levels of a piece, by 16 columns. Planes that there are not are empty.
struct Planes<'p, const BITS: usize> {
    bytes: &'p [[u8; 4 * QUAD]],
    nibbles: &'p [[u8; 2 * QUAD]],
    pairs: &'p [[u8; QUAD]],
    ones: &'p [[u8; QUAD / 2]],
}

impl<'p, const BITS: usize> Planes<'p, BITS> {
    #[inline(always)]
    fn of(piece: &Piece<'p>, units: usize) -> Self {
        let [bytes, nibbles, pairs, ones] = piece.planes;
        // A compiler that knows lengths does not ask for each unit.
        let of = |bits: usize| if BITS & bits != 0 { units } else { 0 };
        Self {
            bytes: &bytes.as_chunks().0[..of(8)],
            nibbles: &nibbles.as_chunks().0[..of(4)],
            pairs: &pairs.as_chunks().0[..of(2)],
            ones: &ones.as_chunks().0[..of(1)],
        }
    }

    /// The levels of 16 columns, or their indices.
    #[inline(always)]
    fn unit(&self, simd: V4Products, unit: usize) -> [__m512i; 4] {
        let f = simd.avx512f;
        if BITS == 8 {
            return cast(self.bytes[unit]);
        }
        let mut made = [f._mm512_setzero_si512(); 4];
        if BITS & 4 != 0 {
            let two: [__m512i; 2] = cast(self.nibbles[unit]);
            let low = f._mm512_set1_epi32(0x0f0f_0f0f);
            for (two, made) in two.into_iter().zip(made.as_chunks_mut::<2>().0) {
                *made = [
                    f._mm512_and_si512(two, low),
                    f._mm512_and_si512(f._mm512_srli_epi32::<4>(two), low),
                ];
            }
        }
        if BITS & 2 != 0 {
            let four = cast(self.pairs[unit]);
            let (shifted, mask) = if BITS & 4 != 0 {
                let shifted = [
                    f._mm512_slli_epi32::<4>(four),
                    f._mm512_slli_epi32::<2>(four),
                    four,
                    f._mm512_srli_epi32::<2>(four),
                ];
                (shifted, f._mm512_set1_epi32(0x3030_3030))
            } else {
                let shifted = [
                    four,
                    f._mm512_srli_epi32::<2>(four),
                    f._mm512_srli_epi32::<4>(four),
                    f._mm512_srli_epi32::<6>(four),
                ];
                (shifted, f._mm512_set1_epi32(0x0303_0303))
            };
            for (shifted, made) in shifted.into_iter().zip(&mut made) {
                *made = f._mm512_or_si512(*made, f._mm512_and_si512(shifted, mask));
            }
        }
        if BITS & 1 != 0 {
            let masks: [u64; 4] = cast(self.ones[unit]);
            let one = f._mm512_set1_epi32(0x0101_0101 << (BITS - 1));
            for (mask, made) in masks.into_iter().zip(&mut made) {
                *made = simd.avx512bw._mm512_mask_add_epi8(*made, mask, *made, one);
            }
        }
        made
    }
}
