//! Tile kernels, with rows in lanes, for many tokens.
#![expect(clippy::needless_range_loop, reason = "tokens and blocks count through several arrays")]

use std::arch::aarch64::{int16x8_t, int32x4_t};

use gguf_quant::integers::IntegerBlock;
use pulp::cast;

use super::super::quantized::Quantized;
use super::super::tile::{DEPTH, Tile};
use super::super::{ROWS, blocks};
use super::rows::scaled;
use crate::neon::{NeonDot, NeonMatrix};

/// Tokens of a tile kernel.
const TOKENS: usize = 4;

/// Sums of two times four rows and `T` tokens, in the order of [`Products`].
type Sums<const T: usize> = [[int32x4_t; T]; 2];

/// Instructions that multiply a tile with `SIDE` interleaved columns per row. `T` is even.
pub(super) trait Products<const SIDE: usize>: Copy {
    fn dots(self) -> NeonDot;

    /// Adds the products of sixteen columns of half of the rows.
    fn multiply<const T: usize>(
        self,
        columns: &[[u8; 16]; 16],
        half: usize,
        x: [[i8; 16]; T],
        sums: &mut Sums<T>,
    );

    /// Returns a number per row of four rows, in the order of the first and of the second half of their sums.
    fn spread(self, numbers: int32x4_t) -> [int32x4_t; 2];

    /// Returns the sums of four rows: rows in lanes, token by token.
    fn turn<const T: usize>(self, sums: [int32x4_t; T]) -> [int32x4_t; T];
}

/// Four rows in lanes.
impl Products<4> for NeonDot {
    #[inline(always)]
    fn dots(self) -> NeonDot {
        self
    }

    #[inline(always)]
    fn multiply<const T: usize>(
        self,
        columns: &[[u8; 16]; 16],
        half: usize,
        x: [[i8; 16]; T],
        sums: &mut Sums<T>,
    ) {
        for quad in 0..2 {
            let w = |side: usize| cast(columns[4 * side + 2 * half + quad]);
            for t in 0..T {
                let (x, sum) = (cast(x[t]), &mut sums[quad][t]);
                *sum = self.dot_lane::<0>(*sum, w(0), x);
                *sum = self.dot_lane::<1>(*sum, w(1), x);
                *sum = self.dot_lane::<2>(*sum, w(2), x);
                *sum = self.dot_lane::<3>(*sum, w(3), x);
            }
        }
    }

    #[inline(always)]
    fn spread(self, numbers: int32x4_t) -> [int32x4_t; 2] {
        [numbers; 2]
    }

    #[inline(always)]
    fn turn<const T: usize>(self, sums: [int32x4_t; T]) -> [int32x4_t; T] {
        sums
    }
}

/// Two rows with two tokens each in lanes: the first two of four rows with all tokens, then the others.
impl Products<8> for NeonMatrix {
    #[inline(always)]
    fn dots(self) -> NeonDot {
        self.dots()
    }

    #[inline(always)]
    fn multiply<const T: usize>(
        self,
        columns: &[[u8; 16]; 16],
        half: usize,
        x: [[i8; 16]; T],
        sums: &mut Sums<T>,
    ) {
        for (tokens, x) in x.as_chunks::<2>().0.iter().enumerate() {
            let (a, b) = (cast(x[0]), cast(x[1]));
            let x = [self.neon.vzip1q_s64(a, b), self.neon.vzip2q_s64(a, b)];
            for side in 0..2 {
                for pair in 0..4 {
                    let w = cast(columns[8 * side + 4 * half + pair]);
                    let sum = &mut sums[pair / 2][pair % 2 * (T / 2) + tokens];
                    *sum = self.matrix(*sum, w, cast(x[side]));
                }
            }
        }
    }

    #[inline(always)]
    fn spread(self, numbers: int32x4_t) -> [int32x4_t; 2] {
        [self.neon.vzip1q_s32(numbers, numbers), self.neon.vzip2q_s32(numbers, numbers)]
    }

    #[inline(always)]
    fn turn<const T: usize>(self, sums: [int32x4_t; T]) -> [int32x4_t; T] {
        let mut turned = sums;
        for tokens in 0..T / 2 {
            let (a, b) = (sums[tokens], sums[T / 2 + tokens]);
            turned[2 * tokens] = self.neon.vuzp1q_s32(a, b);
            turned[2 * tokens + 1] = self.neon.vuzp2q_s32(a, b);
        }
        turned
    }
}

#[inline(always)]
pub(super) fn tile<F: IntegerBlock, S: Products<SIDE>, const SIDE: usize>(
    simd: S,
    weights: &[u8],
    x: &Quantized,
    out: &mut [[f32; ROWS]],
) {
    let blocks = blocks::<F>(x);
    let at_once = DEPTH / F::LEN;
    let row_bytes = blocks * F::BYTES;
    let mut tile = Box::new(Tile::EMPTY);
    out.fill([0.0; ROWS]);
    let mut first = 0;
    while first < blocks {
        let count = at_once.min(blocks - first);
        let base = simd.dots().base();
        tile.unpack_narrow::<F, _, SIDE>(base, weights, row_bytes, first, count);
        let part = Part::<S, SIDE> { simd, x, tile: &tile, first, count };
        let (all, rest) = out.as_chunks_mut::<TOKENS>();
        for (i, out) in all.iter_mut().enumerate() {
            part.multiply::<F, TOKENS>(TOKENS * i, out);
        }
        for (i, out) in rest.chunks_mut(2).enumerate() {
            let mut two = [out[0]; 2];
            two[..out.len()].copy_from_slice(out);
            part.multiply::<F, 2>(TOKENS * all.len() + 2 * i, &mut two);
            out.copy_from_slice(&two[..out.len()]);
        }
        first += count;
    }
}

/// Some blocks of all rows, unpacked.
struct Part<'t, S, const SIDE: usize> {
    simd: S,
    x: &'t Quantized,
    tile: &'t Tile,
    /// First block.
    first: usize,
    /// Number of blocks.
    count: usize,
}

/// Activations of a token.
#[derive(Clone, Copy)]
struct Token<'x> {
    levels: &'x [[i8; 16]],
    scales: &'x [f32],
    sums: &'x [i16],
}

impl<S: Products<SIDE>, const SIDE: usize> Part<'_, S, SIDE> {
    /// Adds the products with the tokens from `token` on; the last one stands in for missing ones.
    #[inline(always)]
    fn multiply<F: IntegerBlock, const T: usize>(&self, token: usize, out: &mut [[f32; ROWS]; T]) {
        let (from, len) = (self.first * F::LEN, self.count * F::LEN);
        let mut x = [Token { levels: &[], scales: &[], sums: &[] }; T];
        for t in 0..T {
            let row = (token + t).min(self.x.rows - 1);
            x[t] = Token {
                levels: self.x.levels(row, from, len).as_chunks().0,
                scales: self.x.scales(row, from, len),
                sums: self.x.sums(row, from, len),
            };
        }
        for half in 0..2 {
            if F::LEN == 256 {
                let mut sums = self.zeros();
                for g in 0..256 / F::GROUP {
                    let result = self.columns(half, g * F::GROUP, F::GROUP, &x);
                    self.add_scaled(half, g, result, &mut sums);
                }
                self.put::<F, T>(half, 0, sums, &x, out);
            } else {
                for block in 0..self.count {
                    let result = self.columns(half, 32 * block, 32, &x);
                    self.put::<F, T>(half, block, result, &x, out);
                }
            }
        }
    }

    #[inline(always)]
    fn zeros<const T: usize>(&self) -> Sums<T> {
        [[self.simd.dots().neon.vdupq_n_s32(0); T]; 2]
    }

    /// Returns the sums of the products of some columns.
    #[inline(always)]
    fn columns<const T: usize>(
        &self,
        half: usize,
        from: usize,
        len: usize,
        x: &[Token<'_>; T],
    ) -> Sums<T> {
        let mut sums = self.zeros();
        let narrow = self.tile.narrow.as_flattened().as_flattened();
        let columns = narrow.as_chunks::<16>().0.as_chunks::<16>().0;
        for n in from / 16..(from + len) / 16 {
            let mut levels = [[0; 16]; T];
            for t in 0..T {
                levels[t] = x[t].levels[n];
            }
            self.simd.multiply(&columns[n], half, levels, &mut sums);
        }
        sums
    }

    /// Adds the sums of a group times its scales.
    #[inline(always)]
    fn add_scaled<const T: usize>(
        &self,
        half: usize,
        group: usize,
        result: Sums<T>,
        sums: &mut Sums<T>,
    ) {
        let neon = self.simd.dots().neon;
        let scales = self.tile.scales[group].as_chunks::<4>().0;
        for quad in 0..2 {
            // Each scale occurs twice: the upper 16 bits, sign-extended.
            let scales = neon.vshrq_n_s32::<16>(cast(scales[2 * half + quad]));
            let scales = self.simd.spread(scales);
            for t in 0..T {
                let sum = &mut sums[quad][t];
                *sum = neon.vmlaq_s32(*sum, result[quad][t], scales[t / (T / 2)]);
            }
        }
    }

    /// Scales and adds the sums of a block.
    #[inline(always)]
    fn put<F: IntegerBlock, const T: usize>(
        &self,
        half: usize,
        block: usize,
        sums: Sums<T>,
        x: &[Token<'_>; T],
        out: &mut [[f32; ROWS]; T],
    ) {
        let simd = self.simd.dots();
        for quad in 0..2 {
            let sums = self.simd.turn(sums[quad]);
            let quad = 2 * half + quad;
            let d = self.tile.d[block].as_chunks::<4>().0[quad];
            let dmin = self.tile.dmin[block].as_chunks::<4>().0[quad];
            for t in 0..T {
                let x_d = simd.neon.vdupq_n_f32(x[t].scales[block]);
                let mut level_sums = sums[t];
                let mut minimum_sums = simd.neon.vdupq_n_s32(0);
                if F::MINIMUMS || F::ZERO != 0 {
                    minimum_sums = self.minimums::<F>(block, quad, x[t].sums);
                }
                if !F::MINIMUMS {
                    level_sums = simd.neon.vsubq_s32(level_sums, minimum_sums);
                }
                let mut part = scaled(simd, cast(d), x_d, level_sums);
                if F::MINIMUMS {
                    let less = scaled(simd, cast(dmin), x_d, minimum_sums);
                    part = simd.neon.vsubq_f32(part, less);
                }
                let out = &mut out[t].as_chunks_mut::<4>().0[quad];
                *out = cast(simd.neon.vaddq_f32(cast(*out), part));
            }
        }
    }

    /// Returns the correction for minimums or for a nonzero level of 0, for four rows.
    #[inline(always)]
    fn minimums<F: IntegerBlock>(&self, block: usize, quad: usize, sums: &[i16]) -> int32x4_t {
        let neon = self.simd.dots().neon;
        if F::LEN == 32 {
            let factor = if F::MINIMUMS { 1 } else { i32::from(F::ZERO) };
            return neon.vdupq_n_s32(factor * i32::from(sums[block]));
        }
        let mut low = neon.vdupq_n_s32(0);
        let mut high = low;
        let pairs = self.tile.minimums.iter().zip(sums.as_chunks::<2>().0);
        for (minimums, sums) in pairs.take(128 / F::GROUP) {
            let minimums: int16x8_t = cast(minimums.as_chunks::<4>().0[quad]);
            let sums: int16x8_t = cast([*sums; 4]);
            let low_sums = (neon.vget_low_s16(minimums), neon.vget_low_s16(sums));
            low = neon.vmlal_s16(low, low_sums.0, low_sums.1);
            high = neon.vmlal_high_s16(high, minimums, sums);
        }
        neon.vpaddq_s32(low, high)
    }
}
