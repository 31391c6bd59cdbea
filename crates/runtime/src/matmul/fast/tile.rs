//! Tiles of weights: rows in SIMD lanes.

#[cfg(target_arch = "x86_64")]
use std::marker::PhantomData;

use gguf_quant::integers::{Block, ByteSimd, IntegerBlock, UnpackedBlock};
#[cfg(target_arch = "x86_64")]
use pulp::{NullaryFnOnce, cast};

use super::ROWS;
#[cfg(target_arch = "x86_64")]
use super::reduce::transpose;
#[cfg(target_arch = "x86_64")]
use crate::simd::V3F16c;

/// Columns that are unpacked together.
pub(super) const DEPTH: usize = 256;

/// Some columns of [`ROWS`] rows.
#[repr(align(64))]
pub(super) struct Tile {
    /// `[row][k]`: levels before they are interleaved.
    levels: [[u8; DEPTH]; ROWS],
    /// `[k / 4][row][k % 4]`: levels in 8 bits.
    pub narrow: [[[u8; 4]; ROWS]; DEPTH / 4],
    /// `[group][row]`: each scale twice.
    pub scales: [[[i16; 2]; ROWS]; 16],
    /// `[group / 2][row][group % 2]`: minimums; without minimums, scales times the level of 0.
    pub minimums: [[[i16; 2]; ROWS]; 8],
    /// `[block][row]`.
    pub d: [[f32; ROWS]; 8],
    /// `[block][row]`.
    pub dmin: [[f32; ROWS]; 8],
}

impl Tile {
    pub const EMPTY: Self = Self {
        levels: [[0; DEPTH]; ROWS],
        narrow: [[[0; 4]; ROWS]; DEPTH / 4],
        scales: [[[0; 2]; ROWS]; 16],
        minimums: [[[0; 2]; ROWS]; 8],
        d: [[0.0; ROWS]; 8],
        dmin: [[0.0; ROWS]; 8],
    };

    /// Unpacks `blocks` blocks of each row from a block on. Missing rows keep their contents.
    #[cfg(target_arch = "x86_64")]
    pub fn unpack<F: IntegerBlock>(
        &mut self,
        simd: V3F16c,
        weights: &[u8],
        row_bytes: usize,
        first: usize,
        blocks: usize,
    ) {
        let tile = self;
        simd.vectorize(Unpack::<F> {
            simd,
            tile,
            weights,
            row_bytes,
            first,
            blocks,
            of: PhantomData,
        });
    }

    /// Unpacks all levels to `narrow`, as `[k / SIDE][row][k % SIDE]`.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub fn unpack_narrow<F: IntegerBlock, L: ByteSimd, const SIDE: usize>(
        &mut self,
        lookup: L,
        weights: &[u8],
        row_bytes: usize,
        first: usize,
        blocks: usize,
    ) {
        self.rows::<F, L>(lookup, weights, row_bytes, first, blocks);
        let narrow = self.narrow.as_flattened_mut().as_flattened_mut();
        let narrow = narrow.as_chunks_mut::<SIDE>().0.as_chunks_mut::<ROWS>().0;
        for (r, row) in self.levels.iter().enumerate() {
            for (side, narrow) in row.as_chunks::<SIDE>().0.iter().zip(&mut *narrow) {
                narrow[r] = *side;
            }
        }
    }

    /// Unpacks all parts, levels row by row.
    #[inline(always)]
    fn rows<F: IntegerBlock, L: ByteSimd>(
        &mut self,
        lookup: L,
        weights: &[u8],
        row_bytes: usize,
        first: usize,
        blocks: usize,
    ) {
        let mut unpacked = UnpackedBlock::EMPTY;
        let rows = self.levels.iter_mut().zip(weights.chunks_exact(row_bytes));
        for (r, (row, bytes)) in rows.enumerate() {
            let parts = row.chunks_exact_mut(F::LEN).take(blocks);
            for (b, (part, bytes)) in parts.zip(&F::Block::all(bytes)[first..]).enumerate() {
                F::unpack(lookup, bytes, &mut unpacked);
                (self.d[b][r], self.dmin[b][r]) = (unpacked.d, unpacked.dmin);
                part.copy_from_slice(&unpacked.levels[..F::LEN]);
                if F::LEN == 32 {
                    continue;
                }
                for g in 0..256 / F::GROUP {
                    let s = unpacked.scales[g];
                    self.scales[g][r] = [s; 2];
                    self.minimums[g / 2][r][g % 2] =
                        if F::MINIMUMS { unpacked.minimums[g] } else { s * i16::from(F::ZERO) };
                }
            }
        }
    }

    /// Interleaves four columns of a row: for eight rows, eight times.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn put(&mut self, simd: V3F16c) {
        for (half, rows) in self.levels.as_chunks::<8>().0.iter().enumerate() {
            for (eight, narrow) in self.narrow.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let columns = transpose(
                    simd,
                    rows.each_ref().map(
                        #[inline(always)]
                        |row| cast(row.as_chunks::<32>().0[eight]),
                    ),
                );
                for (column, narrow) in columns.into_iter().zip(narrow) {
                    narrow.as_chunks_mut::<8>().0[half] = cast(column);
                }
            }
        }
    }
}

/// [`Tile::unpack`], compiled for AVX2 once for all callers.
#[cfg(target_arch = "x86_64")]
struct Unpack<'u, F> {
    simd: V3F16c,
    tile: &'u mut Tile,
    weights: &'u [u8],
    row_bytes: usize,
    first: usize,
    blocks: usize,
    of: PhantomData<fn() -> F>,
}

#[cfg(target_arch = "x86_64")]
impl<F: IntegerBlock> NullaryFnOnce for Unpack<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, tile, weights, row_bytes, first, blocks, .. } = self;
        tile.rows::<F, _>(*simd, weights, row_bytes, first, blocks);
        tile.put(simd);
    }
}
