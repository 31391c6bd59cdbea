//! The products of a group of weights of all rows with tokens.
#![expect(clippy::needless_range_loop, reason = "tokens count through several arrays")]

use std::arch::x86_64::__m512i;

use gguf_quant::integers::IntegerBlock;
use pulp::bytemuck::cast_slice;
use pulp::cast;

use super::super::ROWS;
use super::super::rounded::Piece;
use super::tiles::Sums;
use crate::amx::{self, SIDE, Tiles};
use crate::avx512::V4Products;

/// What multiplies groups with `T` tokens.
pub(super) trait Groups<const T: usize> {
    /// Whether activations are raised by 128, and weights have their signs.
    const RAISED: bool = false;

    /// The levels of tokens.
    type Tokens<'x>;

    /// Those from `token` on.
    fn tokens<'x>(&self, x: Piece<'x>, token: usize) -> Self::Tokens<'x>;

    /// `start`, and the products of a group of weights with tokens, from the column `from` of theirs on.
    fn multiply<F: IntegerBlock>(
        &self,
        simd: V4Products,
        start: __m512i,
        weights: &[[[u8; 4]; ROWS]],
        x: &mut Self::Tokens<'_>,
        from: usize,
    ) -> Sums<T>;
}

/// Vectors, with a number of each row in them. One factor of a product of bytes has no sign: the weights, or
/// else the activations, `RAISED` by 128.
pub(super) struct Vectors<const RAISED: bool>;

impl<const RAISED: bool, const T: usize> Groups<T> for Vectors<RAISED> {
    const RAISED: bool = RAISED;

    type Tokens<'x> = [&'x [[u8; 4]]; T];

    #[inline(always)]
    fn tokens<'x>(&self, x: Piece<'x>, token: usize) -> Self::Tokens<'x> {
        let mut levels: Self::Tokens<'x> = [&[]; T];
        for t in 0..T {
            levels[t] = x.levels(token + t).as_chunks().0;
        }
        levels
    }

    #[inline(always)]
    fn multiply<F: IntegerBlock>(
        &self,
        simd: V4Products,
        start: __m512i,
        weights: &[[[u8; 4]; ROWS]],
        x: &mut Self::Tokens<'_>,
        from: usize,
    ) -> Sums<T> {
        let mut levels: [&[[u8; 4]]; T] = [&[]; T];
        for t in 0..T {
            levels[t] = &x[t][from / 4..][..F::GROUP / 4];
        }
        let mut sums = [start; T];
        // A compiler that sees how many there are takes one token after the other, and each sum waits for the
        // one before.
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

/// Levels of 16 tokens, and a place for their sums.
pub(super) struct Sixteen<'x> {
    /// With those behind them.
    levels: &'x [i8],
    /// From one to the next.
    stride: usize,
    sums: amx::Sums,
}

impl Groups<SIDE> for Tiles {
    type Tokens<'x> = Sixteen<'x>;

    #[inline(always)]
    fn tokens<'x>(&self, x: Piece<'x>, token: usize) -> Sixteen<'x> {
        let levels = cast_slice(&x.levels[token * x.len..]);
        Sixteen { levels, stride: x.len, sums: amx::Sums([[0; ROWS]; SIDE]) }
    }

    #[inline(always)]
    fn multiply<F: IntegerBlock>(
        &self,
        simd: V4Products,
        start: __m512i,
        weights: &[[[u8; 4]; ROWS]],
        x: &mut Sixteen<'_>,
        from: usize,
    ) -> Sums<SIDE> {
        Tiles::multiply(self, &x.levels[from..], x.stride, weights, &mut x.sums);
        let mut sums = [start; SIDE];
        for t in 0..SIDE {
            sums[t] = simd.avx512f._mm512_add_epi32(start, cast(x.sums.0[t]));
        }
        sums
    }
}
