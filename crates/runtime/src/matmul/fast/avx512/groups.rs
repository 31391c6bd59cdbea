//! Products of a group of weights of all rows with tokens.
#![expect(clippy::needless_range_loop, reason = "tokens count through several arrays")]

use std::arch::x86_64::__m512i;

use gguf_quant::integers::IntegerBlock;
use pulp::bytemuck::cast_slice;
use pulp::cast;

use super::super::ROWS;
use super::super::quantized::{PIECE, Piece};
use crate::amx::{self, SIDE, Tiles};
use crate::avx512::V4Vnni;

/// Sums of all rows of a tile, for `T` tokens.
pub(super) type Sums<const T: usize> = [__m512i; T];

/// Levels of `T` tokens in a panel, four columns together. The distance between tokens is constant: with a pointer per token,
/// the compiler runs out of registers.
pub(super) type Levels<const T: usize> = [[[u8; 4]; PIECE / 4]; T];

/// Instructions that multiply groups by `T` tokens.
pub(super) trait Groups<const T: usize> {
    /// Whether 128 is added to activations and weights are signed.
    const RAISED: bool = false;

    /// Levels of tokens.
    type Tokens<'x>;

    /// Returns the levels from `token` on; `padded` is memory for those of a short panel.
    fn tokens<'x>(
        &self,
        x: Piece<'x>,
        token: usize,
        padded: &'x mut Option<Levels<T>>,
    ) -> Self::Tokens<'x>;

    /// Returns `sums` plus the products of a group of weights with tokens, from their column `from` on.
    fn multiply<F: IntegerBlock>(
        &self,
        simd: V4Vnni,
        sums: Sums<T>,
        weights: &[[[u8; 4]; ROWS]],
        x: &mut Self::Tokens<'_>,
        from: usize,
    ) -> Sums<T>;
}

/// VNNI vectors with one number per row. One factor of an INT8 product is unsigned: the weights, or with
/// `RAISED` the activations plus 128.
pub(super) struct Vectors<const RAISED: bool>;

impl<const RAISED: bool, const T: usize> Groups<T> for Vectors<RAISED> {
    const RAISED: bool = RAISED;

    type Tokens<'x> = &'x Levels<T>;

    #[inline(always)]
    fn tokens<'x>(
        &self,
        x: Piece<'x>,
        token: usize,
        padded: &'x mut Option<Levels<T>>,
    ) -> Self::Tokens<'x> {
        let levels = x.levels[token * x.len..].as_chunks().0;
        if x.len == PIECE
            && let Some(levels) = levels.as_chunks().0.first_chunk()
        {
            return levels;
        }
        let padded = padded.insert([[[0; 4]; PIECE / 4]; T]);
        for (to, from) in padded.iter_mut().zip(levels.chunks_exact(x.len / 4)) {
            to[..x.len / 4].copy_from_slice(from);
        }
        padded
    }

    #[inline(always)]
    fn multiply<F: IntegerBlock>(
        &self,
        simd: V4Vnni,
        mut sums: Sums<T>,
        weights: &[[[u8; 4]; ROWS]],
        x: &mut Self::Tokens<'_>,
        from: usize,
    ) -> Sums<T> {
        let mut levels: [&[[u8; 4]]; T] = [&[]; T];
        for t in 0..T {
            levels[t] = &x[t][from / 4..][..F::GROUP / 4];
        }
        // With a known number of columns the compiler orders the loop by tokens, and each sum waits for the one
        // before.
        let columns = if F::GROUP == 32 { std::hint::black_box(8) } else { F::GROUP / 4 };
        for (k, column) in weights[..columns].iter().enumerate() {
            let weights = cast(*column);
            for t in 0..T {
                let x = simd.avx512f._mm512_set1_epi32(cast(levels[t][k]));
                sums[t] = if RAISED {
                    simd.add_bytes(sums[t], x, weights)
                } else {
                    simd.add_bytes(sums[t], weights, x)
                };
            }
        }
        sums
    }
}

/// Levels of 16 tokens, and memory for their sums.
pub(super) struct Sixteen<'x> {
    /// Levels from the first token on.
    levels: &'x [i8],
    /// Distance between tokens.
    stride: usize,
    sums: amx::Sums,
}

impl Groups<SIDE> for Tiles {
    type Tokens<'x> = Sixteen<'x>;

    #[inline(always)]
    fn tokens<'x>(
        &self,
        x: Piece<'x>,
        token: usize,
        _: &'x mut Option<Levels<SIDE>>,
    ) -> Sixteen<'x> {
        let levels = cast_slice(&x.levels[token * x.len..]);
        Sixteen { levels, stride: x.len, sums: amx::Sums([[0; ROWS]; SIDE]) }
    }

    #[inline(always)]
    fn multiply<F: IntegerBlock>(
        &self,
        simd: V4Vnni,
        mut sums: Sums<SIDE>,
        weights: &[[[u8; 4]; ROWS]],
        x: &mut Sixteen<'_>,
        from: usize,
    ) -> Sums<SIDE> {
        Tiles::multiply(self, &x.levels[from..], x.stride, weights, &mut x.sums);
        for t in 0..SIDE {
            sums[t] = simd.avx512f._mm512_add_epi32(sums[t], cast(x.sums.0[t]));
        }
        sums
    }
}
