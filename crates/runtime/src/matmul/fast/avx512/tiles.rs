//! Tile kernels, with rows in lanes, for many tokens.
#![expect(clippy::needless_range_loop, reason = "tokens and blocks count through several arrays")]

use std::arch::x86_64::{__m512, __m512i};
use std::ops::Range;

use gguf_quant::integers::IntegerBlock;
use pulp::cast;

use super::super::quantized::{Piece, Quantized};
use super::super::tile::{DEPTH, Tile};
use super::super::{ROWS, blocks};
use super::groups::{Groups, Sums, Vectors};
use crate::amx::{Amx, SIDE};
use crate::avx512::V4Vnni;
use crate::prefetch::prefetch;

/// Whether 128 is added to activations: types without minimums then use signed weights and need no correction.
pub(super) fn raised<F: IntegerBlock>(amx: Option<Amx>) -> bool {
    !F::MINIMUMS && amx.is_none()
}

/// Whether levels are multiplied by the scales of their groups before all tokens are multiplied.
fn folds<F: IntegerBlock>(amx: Option<Amx>) -> bool {
    F::SCALED_LEVELS_FIT && amx.is_none()
}

/// Tiles that are multiplied by tokens while these are in the first-level cache.
pub(super) const TOGETHER: usize = 2;

/// Multiplies up to [`TOGETHER`] tiles by all tokens: `out` has a row per token for the first tile, then for the
/// next. Levels of `F` are unsigned.
#[inline(always)]
pub(super) fn tiles<F: IntegerBlock>(
    simd: V4Vnni,
    amx: Option<Amx>,
    weights: &[u8],
    x: &Quantized,
    out: &mut [[f32; ROWS]],
) {
    let by_amx = amx.filter(|_| x.rows >= SIDE).and_then(|amx| amx.tiles(F::GROUP));
    let blocks = blocks::<F>(x);
    let row_bytes = blocks * F::BYTES;
    let at_once = DEPTH / F::LEN;
    let mut unpacked: Vec<_> = out.chunks(x.rows).map(|_| UnpackedBlock::EMPTY).collect();
    for first in (0..blocks).step_by(at_once) {
        let count = at_once.min(blocks - first);
        // The next blocks, or the first ones of the next rows, which the same thread mostly takes too.
        let behind = first + count;
        let (ahead, next) = match behind < blocks {
            true => (0, behind..blocks.min(behind + at_once)),
            false => (weights.len(), 0..at_once.min(blocks)),
        };
        for (rows, unpacked) in weights.chunks(ROWS * row_bytes).zip(&mut unpacked) {
            // With AVX2: see [`super::Avx512`].
            unpacked.tile.unpack::<F>(simd.halves(), rows, row_bytes, first, count);
            prefetch_rows(rows, row_bytes, ahead, next.start * F::BYTES..next.end * F::BYTES);
            if folds::<F>(amx) {
                fold::<F>(simd, unpacked);
            } else if raised::<F>(amx) {
                lower::<F>(simd, unpacked);
            }
        }
        let (x, folded) = (x.piece(first * F::LEN), folds::<F>(amx));
        let part = Part { simd, x, tiles: &unpacked, first, count, folded };
        let mut done = 0;
        if raised::<F>(amx) {
            done = part.by::<F, _, 8>(&Vectors::<true>, done, out);
            done = part.by::<F, _, 4>(&Vectors::<true>, done, out);
            done = part.by::<F, _, 2>(&Vectors::<true>, done, out);
            part.by::<F, _, 1>(&Vectors::<true>, done, out);
            continue;
        }
        if let Some(tiles) = &by_amx {
            done = part.by::<F, _, SIDE>(tiles, done, out);
        }
        done = part.by::<F, _, 8>(&Vectors::<false>, done, out);
        done = part.by::<F, _, 4>(&Vectors::<false>, done, out);
        done = part.by::<F, _, 2>(&Vectors::<false>, done, out);
        part.by::<F, _, 1>(&Vectors::<false>, done, out);
    }
}

/// Prefetches bytes of the rows that begin `ahead` bytes after `rows`, while others are multiplied.
#[inline(always)]
fn prefetch_rows(rows: &[u8], row_bytes: usize, ahead: usize, bytes: Range<usize>) {
    for row in rows.chunks_exact(row_bytes) {
        let row = row.as_ptr().wrapping_add(ahead);
        for at in bytes.clone().step_by(64).chain([bytes.end - 1]) {
            prefetch(row.wrapping_add(at));
        }
    }
}

/// Some blocks of the rows of a tile, unpacked.
struct UnpackedBlock {
    tile: Tile,
    /// `[group][row]`: initial sums, which compensate the 128 added to activations.
    start: [[i32; ROWS]; 16],
}

impl UnpackedBlock {
    const EMPTY: Self = Self { tile: Tile::EMPTY, start: [[0; ROWS]; 16] };
}

/// Makes levels signed, for activations with 128 added.
#[inline(always)]
fn lower<F: IntegerBlock>(simd: V4Vnni, UnpackedBlock { tile, start }: &mut UnpackedBlock) {
    let f = simd.avx512f;
    let zero = f._mm512_set1_epi8(F::ZERO as i8);
    let raise = f._mm512_set1_epi8(-128);
    for (columns, start) in tile.narrow.chunks_exact_mut(F::GROUP / 4).zip(start) {
        let mut sums = f._mm512_setzero_si512();
        for column in columns {
            let levels = simd.avx512bw._mm512_sub_epi8(cast(*column), zero);
            sums = simd.add_bytes(sums, raise, levels);
            *column = cast(levels);
        }
        *start = cast(f._mm512_sub_epi32(f._mm512_setzero_si512(), sums));
    }
}

/// Multiplies levels by the scales of their groups. Those of types without minimums become signed, for activations with 128
/// added; they and `d` change signs, since 4 times -32 fits a byte and 4 times 32 does not.
#[inline(always)]
fn fold<F: IntegerBlock>(simd: V4Vnni, UnpackedBlock { tile, start }: &mut UnpackedBlock) {
    let (f, words) = (simd.avx512f, simd.avx512bw);
    let zero = f._mm512_set1_epi8(F::ZERO as i8);
    let raise = f._mm512_set1_epi8(-128);
    let mut sums = f._mm512_setzero_si512();
    for (columns, scales) in tile.narrow.chunks_exact_mut(F::GROUP / 4).zip(&tile.scales) {
        let scales = cast(*scales);
        for column in columns {
            let mut levels = cast(*column);
            if !F::MINIMUMS {
                levels = words._mm512_sub_epi8(zero, levels);
            }
            let even = words._mm512_srai_epi16::<8>(words._mm512_slli_epi16::<8>(levels));
            let even = words._mm512_mullo_epi16(even, scales);
            let odd = words._mm512_mullo_epi16(words._mm512_srai_epi16::<8>(levels), scales);
            let odd = words._mm512_slli_epi16::<8>(odd);
            let levels = words._mm512_mask_blend_epi8(0xaaaa_aaaa_aaaa_aaaa, even, odd);
            if !F::MINIMUMS {
                sums = simd.add_bytes(sums, raise, levels);
            }
            *column = cast(levels);
        }
    }
    if !F::MINIMUMS {
        start[0] = cast(f._mm512_sub_epi32(f._mm512_setzero_si512(), sums));
        tile.d[0] = tile.d[0].map(|d| -d);
    }
}

/// Some blocks of all rows.
struct Part<'t> {
    simd: V4Vnni,
    x: Piece<'t>,
    tiles: &'t [UnpackedBlock],
    /// First block.
    first: usize,
    /// Number of blocks.
    count: usize,
    /// Whether levels are multiplied by their scales.
    folded: bool,
}

impl Part<'_> {
    /// Adds the products with the tokens from `done` on while `T` more are left. Returns the number of tokens
    /// done.
    #[inline(always)]
    fn by<F: IntegerBlock, G: Groups<T>, const T: usize>(
        &self,
        groups: &G,
        mut done: usize,
        out: &mut [[f32; ROWS]],
    ) -> usize {
        let Self { simd, x, first, count, folded, .. } = *self;
        let rows = x.rows();
        while done + T <= rows {
            let mut of = [Token::EMPTY; T];
            for t in 0..T {
                of[t] = Token { d: x.scales(done + t), sums: x.sums(done + t) };
            }
            let mut padded = None;
            let mut levels = groups.tokens(x, done, &mut padded);
            let scaling = match () {
                () if folded => Scaling::Done,
                () if (0..T).all(|t| short::<F>(G::RAISED, x.largest[done + t])) => Scaling::Pairs,
                () => Scaling::Groups,
            };
            for (tile, out) in self.tiles.iter().zip(out.chunks_exact_mut(rows)) {
                if let Some(out) = out[done..].first_chunk_mut() {
                    Product { simd, tile, first, count, scaling }.add::<F, G, T>(
                        groups,
                        of,
                        &mut levels,
                        out,
                    );
                }
            }
            done += T;
        }
        done
    }
}

/// Some blocks of the rows of a tile, to multiply.
#[derive(Clone, Copy)]
struct Product<'t> {
    simd: V4Vnni,
    tile: &'t UnpackedBlock,
    /// First block.
    first: usize,
    /// Number of blocks.
    count: usize,
    scaling: Scaling,
}

/// Multiplication of sums by the scales of groups.
#[derive(Clone, Copy)]
enum Scaling {
    /// Levels were multiplied by the scales before.
    Done,
    /// The sums of two groups are scaled together: they fit into 16 bits.
    Pairs,
    /// The sums of each group are scaled alone.
    Groups,
}

/// Whether the sums of groups fit into 16 bits, given the maximum sum of magnitudes of activations.
#[inline(always)]
fn short<F: IntegerBlock>(raised: bool, magnitudes: u16) -> bool {
    let (top, zero) = (F::MAX_LEVEL.map_or(255, u32::from), u32::from(F::ZERO));
    let most = if raised { zero.max(top - zero) } else { top };
    // With more bits per level this is rare.
    most < 64 && u32::from(magnitudes) * most <= i16::MAX as u32
}

impl Product<'_> {
    /// Adds the products with tokens.
    #[inline(always)]
    fn add<F: IntegerBlock, G: Groups<T>, const T: usize>(
        self,
        groups: &G,
        of: [Token<'_>; T],
        x: &mut G::Tokens<'_>,
        out: &mut [[f32; ROWS]; T],
    ) {
        let Self { simd, tile: UnpackedBlock { start, .. }, count, scaling, .. } = self;
        let mut totals = [simd.avx512f._mm512_setzero_ps(); T];
        if self.first > 0 {
            for t in 0..T {
                totals[t] = cast(out[t]);
            }
        }
        if F::LEN == 256 {
            let mut level_sums = [simd.avx512f._mm512_setzero_si512(); T];
            match scaling {
                Scaling::Done => {
                    level_sums = [cast(start[0]); T];
                    for g in 0..256 / F::GROUP {
                        level_sums = self.group::<F, G, T>(groups, g, level_sums, x);
                    }
                }
                Scaling::Pairs => {
                    for g in (0..256 / F::GROUP).step_by(2) {
                        // Not `map`, which is not always compiled for these instructions.
                        let first = [cast(start[g]); T];
                        let first = self.group::<F, G, T>(groups, g, first, x);
                        let next = [cast(start[g + 1]); T];
                        let next = self.group::<F, G, T>(groups, g + 1, next, x);
                        self.add_two(g, [first, next], &mut level_sums);
                    }
                }
                Scaling::Groups => {
                    for g in 0..256 / F::GROUP {
                        let sums = self.group::<F, G, T>(groups, g, [cast(start[g]); T], x);
                        self.add_scaled(g, sums, &mut level_sums);
                    }
                }
            }
            self.scale::<F, T>(G::RAISED, 0, level_sums, of, &mut totals);
        } else {
            for n in 0..count {
                let result = self.group::<F, G, T>(groups, n, [cast(start[n]); T], x);
                self.scale::<F, T>(G::RAISED, n, result, of, &mut totals);
            }
        }
        for t in 0..T {
            out[t] = cast(totals[t]);
        }
    }

    /// Returns `sums` plus the products of a group.
    #[inline(always)]
    fn group<F: IntegerBlock, G: Groups<T>, const T: usize>(
        &self,
        groups: &G,
        g: usize,
        sums: Sums<T>,
        x: &mut G::Tokens<'_>,
    ) -> Sums<T> {
        let narrow = &self.tile.tile.narrow;
        let weights = &narrow[F::GROUP / 4 * g..][..F::GROUP / 4];
        groups.multiply::<F>(self.simd, sums, weights, x, F::GROUP * g)
    }

    /// Adds the products of a group times its scales.
    #[inline(always)]
    fn add_scaled<const T: usize>(&self, g: usize, result: Sums<T>, sums: &mut Sums<T>) {
        let f = self.simd.avx512f;
        let scales = f._mm512_srai_epi32::<16>(cast(self.tile.tile.scales[g]));
        for t in 0..T {
            let scaled = f._mm512_mullo_epi32(result[t], scales);
            sums[t] = f._mm512_add_epi32(sums[t], scaled);
        }
    }

    /// Adds the products of two groups, which fit into 16 bits side by side, times their scales.
    #[inline(always)]
    fn add_two<const T: usize>(&self, g: usize, [first, next]: [Sums<T>; 2], sums: &mut Sums<T>) {
        const SECONDS: u32 = 0xaaaa_aaaa;
        let Self { simd, tile, .. } = self;
        let (f, words) = (simd.avx512f, simd.avx512bw);
        let [a, b] = [cast(tile.tile.scales[g]), cast(tile.tile.scales[g + 1])];
        let scales = words._mm512_mask_blend_epi16(SECONDS, a, b);
        for t in 0..T {
            let next = f._mm512_slli_epi32::<16>(next[t]);
            let two = words._mm512_mask_blend_epi16(SECONDS, first[t], next);
            sums[t] = simd.add_pairs(sums[t], two, scales);
        }
    }

    /// Scales the sums of a block, and adds them to `totals`.
    #[inline(always)]
    fn scale<F: IntegerBlock, const T: usize>(
        &self,
        raised: bool,
        block: usize,
        mut level_sums: Sums<T>,
        of: [Token<'_>; T],
        totals: &mut [__m512; T],
    ) {
        let f = self.simd.avx512f;
        let d = cast(self.tile.tile.d[block]);
        let dmin = cast(self.tile.tile.dmin[block]);
        let mut minimums = [f._mm512_setzero_si512(); T];
        if !raised {
            minimums = self.minimums::<F, T>(block, of);
        }
        if !raised && !F::MINIMUMS {
            for t in 0..T {
                level_sums[t] = f._mm512_sub_epi32(level_sums[t], minimums[t]);
            }
        }
        for t in 0..T {
            let x_d = f._mm512_set1_ps(of[t].d[block]);
            let mut part = self.scaled(d, x_d, level_sums[t]);
            if F::MINIMUMS {
                part = f._mm512_sub_ps(part, self.scaled(dmin, x_d, minimums[t]));
            }
            totals[t] = f._mm512_add_ps(totals[t], part);
        }
    }

    /// Returns sums times the scales of weights and activations.
    #[inline(always)]
    fn scaled(&self, d: __m512, x_d: __m512, sums: __m512i) -> __m512 {
        let f = self.simd.avx512f;
        f._mm512_mul_ps(f._mm512_mul_ps(d, x_d), f._mm512_cvtepi32_ps(sums))
    }

    /// Returns the corrections for minimums or for a nonzero level of 0.
    #[inline(always)]
    fn minimums<F: IntegerBlock, const T: usize>(
        &self,
        block: usize,
        of: [Token<'_>; T],
    ) -> Sums<T> {
        let simd = self.simd;
        let mut result = [simd.avx512f._mm512_setzero_si512(); T];
        if F::LEN == 32 {
            let factor = if F::MINIMUMS { 1 } else { i32::from(F::ZERO) };
            for t in 0..T {
                result[t] = simd.avx512f._mm512_set1_epi32(factor * i32::from(of[t].sums[block]));
            }
            return result;
        }
        for (pair, minimums) in self.tile.tile.minimums[..128 / F::GROUP].iter().enumerate() {
            let minimums = cast(*minimums);
            for t in 0..T {
                let sums = [of[t].sums[2 * pair], of[t].sums[2 * pair + 1]];
                let sums = simd.avx512f._mm512_set1_epi32(cast(sums));
                result[t] = simd.add_pairs(result[t], minimums, sums);
            }
        }
        result
    }
}

/// Activations of a token in some blocks.
#[derive(Clone, Copy)]
struct Token<'x> {
    d: &'x [f32],
    sums: &'x [i16],
}

impl Token<'_> {
    const EMPTY: Self = Self { d: &[], sums: &[] };
}
