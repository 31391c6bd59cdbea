//! Rows in lanes: for many tokens.
#![expect(clippy::needless_range_loop, reason = "tokens and blocks count through several arrays")]

use std::arch::x86_64::{__m512, __m512i};
use std::marker::PhantomData;
use std::ops::Range;

use gguf_quant::integers::IntegerBlock;
use pulp::{NullaryFnOnce, cast};

use super::super::rounded::{Piece, Rounded};
use super::super::tile::{DEPTH, Tile};
use super::super::{ROWS, blocks};
use super::groups::{Groups, Vectors};
use crate::amx::{Amx, SIDE};
use crate::avx512::V4Products;
use crate::prefetch::prefetch;
use crate::simd::V3Halves;

/// Whether activations are raised: where there are no minima, weights with their signs need nothing in place of them.
pub(super) fn raised<F: IntegerBlock>(amx: Option<Amx>) -> bool {
    !F::MINIMUMS && amx.is_none()
}

/// Tiles that are multiplied with tokens while these are in the first-level cache.
pub(super) const TOGETHER: usize = 2;

/// The products of up to [`TOGETHER`] tiles with all tokens: `out` has a row for each token of the first tile, then
/// those of the next. Levels of `F` have no sign.
#[inline(always)]
pub(super) fn tiles<F: IntegerBlock>(
    simd: V4Products,
    amx: Option<Amx>,
    weights: &[u8],
    x: &Rounded,
    out: &mut [[f32; ROWS]],
) {
    let by_amx = amx.filter(|_| x.rows >= SIDE).and_then(|amx| amx.tiles(F::GROUP));
    let blocks = blocks::<F>(x);
    let row_bytes = blocks * F::BYTES;
    let at_once = DEPTH / F::LEN;
    let of = PhantomData;
    let mut unpacked: Vec<_> = out.chunks(x.rows).map(|_| UnpackedBlock::EMPTY).collect();
    for first in (0..blocks).step_by(at_once) {
        let count = at_once.min(blocks - first);
        // The blocks that come next, or the first ones of the rows behind these: the same thread mostly
        // takes those, too.
        let behind = first + count;
        let (ahead, next) = match behind < blocks {
            true => (0, behind..blocks.min(behind + at_once)),
            false => (weights.len(), 0..at_once.min(blocks)),
        };
        for (rows, unpacked) in weights.chunks(ROWS * row_bytes).zip(&mut unpacked) {
            let (halves, tile) = (simd.halves(), &mut unpacked.tile);
            halves.vectorize(Unpack::<F> {
                halves,
                tile,
                weights: rows,
                row_bytes,
                first,
                count,
                of,
            });
            ask_for(rows, row_bytes, ahead, next.start * F::BYTES..next.end * F::BYTES);
            if raised::<F>(amx) {
                lower::<F>(simd, unpacked);
            }
        }
        let part = Part { simd, x: x.piece(first * F::LEN), tiles: &unpacked, first, count };
        let mut done = 0;
        if raised::<F>(amx) {
            done = part.by::<F, _, 8>(&Vectors::<true>, done, out);
            done = part.by::<F, _, 2>(&Vectors::<true>, done, out);
            part.by::<F, _, 1>(&Vectors::<true>, done, out);
            continue;
        }
        if let Some(tiles) = &by_amx {
            done = part.by::<F, _, SIDE>(tiles, done, out);
        }
        done = part.by::<F, _, 8>(&Vectors::<false>, done, out);
        done = part.by::<F, _, 2>(&Vectors::<false>, done, out);
        part.by::<F, _, 1>(&Vectors::<false>, done, out);
    }
}

/// Blocks to unpack, by the instructions of AVX2: see [`super::Avx512`].
struct Unpack<'t, F> {
    halves: V3Halves,
    tile: &'t mut Tile,
    weights: &'t [u8],
    row_bytes: usize,
    first: usize,
    count: usize,
    of: PhantomData<fn() -> F>,
}

impl<F: IntegerBlock> NullaryFnOnce for Unpack<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { halves, tile, weights, row_bytes, first, count, .. } = self;
        tile.unpack::<F>(halves, weights, row_bytes, first, count);
    }
}

/// Brings bytes of rows nearer, while others are multiplied: those of the rows that begin `ahead` bytes behind
/// `rows`, if there are such.
#[inline(always)]
fn ask_for(rows: &[u8], row_bytes: usize, ahead: usize, bytes: Range<usize>) {
    for row in rows.chunks_exact(row_bytes) {
        let row = row.as_ptr().wrapping_add(ahead);
        for at in bytes.clone().step_by(64).chain([bytes.end - 1]) {
            prefetch(row.wrapping_add(at));
        }
    }
}

/// Some blocks of the rows of a tile.
struct UnpackedBlock {
    tile: Tile,
    /// `[group][row]`: what sums begin with, less than 0 by what activations raised by 128 add to them.
    start: [[i32; ROWS]; 16],
}

impl UnpackedBlock {
    const EMPTY: Self = Self { tile: Tile::EMPTY, start: [[0; ROWS]; 16] };
}

/// Gives levels their signs, so that activations have to be raised.
#[inline(always)]
fn lower<F: IntegerBlock>(simd: V4Products, UnpackedBlock { tile, start }: &mut UnpackedBlock) {
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

/// Some blocks of all rows.
struct Part<'t> {
    simd: V4Products,
    x: Piece<'t>,
    tiles: &'t [UnpackedBlock],
    /// The first block.
    first: usize,
    /// Blocks.
    count: usize,
}

/// Numbers of all rows of a tile, of `T` tokens.
pub(super) type Sums<const T: usize> = [__m512i; T];

impl Part<'_> {
    /// Adds the products with the tokens from `done` on, as long as there are `T` more. Returns how many
    /// tokens are done then.
    #[inline(always)]
    fn by<F: IntegerBlock, G: Groups<T>, const T: usize>(
        &self,
        groups: &G,
        mut done: usize,
        out: &mut [[f32; ROWS]],
    ) -> usize {
        let Self { simd, x, first, count, .. } = *self;
        let rows = x.rows();
        while done + T <= rows {
            let mut of = [Token::EMPTY; T];
            for t in 0..T {
                of[t] = Token { d: x.scales(done + t), sums: x.sums(done + t) };
            }
            let mut levels = groups.tokens(x, done);
            let short = F::LEN == 256 && (0..T).all(|t| short::<F>(G::RAISED, x.largest[done + t]));
            for (tile, out) in self.tiles.iter().zip(out.chunks_exact_mut(rows)) {
                if let Some(out) = out[done..].first_chunk_mut() {
                    Product { simd, tile, first, count, short }.add::<F, G, T>(
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

/// Some blocks of the rows of a tile, to be multiplied.
#[derive(Clone, Copy)]
struct Product<'t> {
    simd: V4Products,
    tile: &'t UnpackedBlock,
    /// The first block.
    first: usize,
    /// Blocks.
    count: usize,
    /// Whether the sums of groups fit in 16 bits.
    short: bool,
}

/// Whether the sums of groups fit in 16 bits, if the magnitudes of activations have such a sum at most.
#[inline(always)]
fn short<F: IntegerBlock>(raised: bool, magnitudes: u16) -> bool {
    let (top, zero) = (F::MAX_LEVEL.map_or(255, u32::from), u32::from(F::ZERO));
    let most = if raised { zero.max(top - zero) } else { top };
    // Where levels have more bits it hardly happens.
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
        let Self { simd, count, short, .. } = self;
        if F::LEN == 256 {
            let mut of_levels = [simd.avx512f._mm512_setzero_si512(); T];
            if short {
                for g in (0..256 / F::GROUP).step_by(2) {
                    let first = self.group::<F, G, T>(groups, g, x);
                    let next = self.group::<F, G, T>(groups, g + 1, x);
                    self.add_two(g, [first, next], &mut of_levels);
                }
            } else {
                for g in 0..256 / F::GROUP {
                    self.add_scaled(g, self.group::<F, G, T>(groups, g, x), &mut of_levels);
                }
            }
            self.put::<F, T>(G::RAISED, 0, of_levels, of, out);
        } else {
            for n in 0..count {
                let made = self.group::<F, G, T>(groups, n, x);
                self.put::<F, T>(G::RAISED, n, made, of, out);
            }
        }
    }

    /// The products of a group.
    #[inline(always)]
    fn group<F: IntegerBlock, G: Groups<T>, const T: usize>(
        &self,
        groups: &G,
        g: usize,
        x: &mut G::Tokens<'_>,
    ) -> Sums<T> {
        let UnpackedBlock { tile, start } = self.tile;
        let weights = &tile.narrow[F::GROUP / 4 * g..][..F::GROUP / 4];
        groups.multiply::<F>(self.simd, cast(start[g]), weights, x, F::GROUP * g)
    }

    /// Adds the products of a group times its scales.
    #[inline(always)]
    fn add_scaled<const T: usize>(&self, g: usize, made: Sums<T>, sums: &mut Sums<T>) {
        let f = self.simd.avx512f;
        let scales = f._mm512_srai_epi32::<16>(cast(self.tile.tile.scales[g]));
        for t in 0..T {
            let scaled = f._mm512_mullo_epi32(made[t], scales);
            sums[t] = f._mm512_add_epi32(sums[t], scaled);
        }
    }

    /// The same of two groups at once, whose products fit in 16 bits: side by side.
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

    /// Scales the sums of a block, and adds them; those of the first block to 0.
    #[inline(always)]
    fn put<F: IntegerBlock, const T: usize>(
        &self,
        raised: bool,
        block: usize,
        of_levels: Sums<T>,
        of: [Token<'_>; T],
        out: &mut [[f32; ROWS]; T],
    ) {
        let f = self.simd.avx512f;
        let begins = self.first + block == 0;
        let d = cast(self.tile.tile.d[block]);
        let dmin = cast(self.tile.tile.dmin[block]);
        for t in 0..T {
            let x_d = f._mm512_set1_ps(of[t].d[block]);
            let part = if F::MINIMUMS {
                let less = self.scaled(dmin, x_d, self.minimums::<F>(block, of[t].sums));
                f._mm512_sub_ps(self.scaled(d, x_d, of_levels[t]), less)
            } else if raised {
                self.scaled(d, x_d, of_levels[t])
            } else {
                let less = self.minimums::<F>(block, of[t].sums);
                self.scaled(d, x_d, f._mm512_sub_epi32(of_levels[t], less))
            };
            let before = if begins { f._mm512_setzero_ps() } else { cast(out[t]) };
            out[t] = cast(f._mm512_add_ps(before, part));
        }
    }

    /// Sums times the scales of weights and activations.
    #[inline(always)]
    fn scaled(&self, d: __m512, x_d: __m512, sums: __m512i) -> __m512 {
        let f = self.simd.avx512f;
        f._mm512_mul_ps(f._mm512_mul_ps(d, x_d), f._mm512_cvtepi32_ps(sums))
    }

    /// What minima, or levels of 0 that are not 0, take away.
    #[inline(always)]
    fn minimums<F: IntegerBlock>(&self, block: usize, sums: &[i16]) -> __m512i {
        let simd = self.simd;
        if F::LEN == 32 {
            let factor = if F::MINIMUMS { 1 } else { i32::from(F::ZERO) };
            return simd.avx512f._mm512_set1_epi32(factor * i32::from(sums[block]));
        }
        let mut made = simd.avx512f._mm512_setzero_si512();
        let pairs = self.tile.tile.minimums.iter().zip(sums.as_chunks::<2>().0);
        for (minimums, sums) in pairs.take(128 / F::GROUP) {
            let sums = simd.avx512f._mm512_set1_epi32(cast(*sums));
            made = simd.add_pairs(made, cast(*minimums), sums);
        }
        made
    }
}

/// What there is of a token in some blocks.
#[derive(Clone, Copy)]
struct Token<'x> {
    d: &'x [f32],
    sums: &'x [i16],
}

impl Token<'_> {
    const EMPTY: Self = Self { d: &[], sums: &[] };
}
