//! Weight repacking for a few tokens. [`PackedFormat`] describes the result.

use gguf_quant::integers::{Block, ByteSimd, IntegerBlock, UnpackedBlock};
use half::f16;
use pulp::NullaryFnOnce;
use rayon::prelude::*;

use super::ROWS;
use super::tile::{DEPTH, Tile};
use super::unsigned::Unsigned;
use crate::repack::{self, Packed, PackedFormat};
use crate::simd::V3F16c;

const _: () = assert!(repack::ROWS == ROWS && repack::DEPTH == DEPTH);

/// Bytes of levels of [`ROWS`] rows and four columns, in 8 bits.
pub(super) const QUAD: usize = 4 * ROWS;

/// Repacks rows; `None` if there is no memory for it.
pub(super) fn pack<F: IntegerBlock>(
    simd: V3F16c,
    weights: &[u8],
    row_bytes: usize,
) -> Option<Packed> {
    let format = format::<F, _>(*simd, weights, row_bytes);
    pack_strips(simd, format, weights, row_bytes, &|tile, weights, first, blocks| {
        tile.unpack::<Unsigned<F>>(simd, weights, row_bytes, first, blocks);
    })
}

/// Unpacks some blocks of rows from a block on.
type UnpackBlocks<'u> = dyn Fn(&mut Tile, &[u8], usize, usize) + Sync + 'u;

/// Repacks rows strip by strip. Everything but `unpack` is compiled once for all types.
fn pack_strips(
    simd: V3F16c,
    format: PackedFormat,
    weights: &[u8],
    row_bytes: usize,
    unpack: &UnpackBlocks<'_>,
) -> Option<Packed> {
    let index = (format.bits <= 4 && !format.is_plain()).then(|| {
        let mut index = [0; 256];
        for (i, level) in format.table.iter().enumerate().rev() {
            index[usize::from(*level)] = i as u8;
        }
        index
    });
    let mut packed = Packed::new(format, weights.len().div_ceil(ROWS * row_bytes))?;
    let strip_bytes = packed.strip_bytes();
    let (format, data) = packed.parts_mut();
    let strips = data.par_chunks_exact_mut(strip_bytes);
    let strips = strips.zip(weights.par_chunks(ROWS * row_bytes));
    strips.for_each(|(strip, weights)| fill(simd, format, index.as_ref(), weights, unpack, strip));
    Some(packed)
}

/// Returns the format for rows of a type, with as few bits as the levels in them need.
fn format<F: IntegerBlock, L: ByteSimd + Sync>(
    lookup: L,
    weights: &[u8],
    row_bytes: usize,
) -> PackedFormat {
    let levels = match F::MAX_LEVEL {
        Some(top) => (0..=top).collect(),
        None => levels(weights, row_bytes, &|row, found| find_levels::<F, L>(lookup, row, found)),
    };
    let highest = levels.iter().max().copied().unwrap_or(0);
    let bits = match (levels.len(), highest) {
        (..=4, _) => 2,
        (..=8, _) => 3,
        (..=16, _) => 4,
        (_, ..32) => 5,
        (_, ..64) => 6,
        _ => 8,
    };
    let mut table = [0; 16];
    if bits <= 4 {
        table[..levels.len()].copy_from_slice(&levels);
    }
    PackedFormat {
        len: F::LEN,
        group: F::GROUP,
        width: row_bytes / F::BYTES * F::LEN,
        bits,
        table,
        zero: if F::MINIMUMS { 0 } else { Unsigned::<F>::ZERO },
        minimums: F::MINIMUMS,
        halves: F::F16_OFFSET.is_some(),
    }
}

/// Whether each level occurs.
type Levels = [bool; 256];

/// Returns the levels that occur in rows, as `find` sees them in one. The parallel loop is compiled once for all types.
fn levels(weights: &[u8], row_bytes: usize, find: &(dyn Fn(&[u8], &mut Levels) + Sync)) -> Vec<u8> {
    let found = weights.par_chunks(row_bytes).map(|row| {
        let mut found = [false; 256];
        find(row, &mut found);
        found
    });
    let found = found.reduce(|| [false; 256], |a, b| std::array::from_fn(|i| a[i] | b[i]));
    (0..=255).filter(|level| found[usize::from(*level)]).collect()
}

/// Marks the levels that occur in a row of a signed type.
fn find_levels<F: IntegerBlock, L: ByteSimd + Sync>(lookup: L, row: &[u8], found: &mut Levels) {
    let mut unpacked = UnpackedBlock::EMPTY;
    for block in F::Block::all(row) {
        Unsigned::<F>::unpack(lookup, block, &mut unpacked);
        unpacked.levels[..F::LEN].iter().for_each(|level| found[usize::from(*level)] = true);
    }
}

/// Repacks the rows of a strip.
fn fill(
    simd: V3F16c,
    format: &PackedFormat,
    index: Option<&[u8; 256]>,
    weights: &[u8],
    unpack: &UnpackBlocks<'_>,
    strip: &mut [u8],
) {
    let mut tile = Box::new(Tile::EMPTY);
    let (mut first, mut rest) = (0, strip);
    for (columns, bytes) in format.pieces() {
        let blocks = columns / format.len;
        unpack(&mut tile, weights, first, blocks);
        first += blocks;
        let (piece, behind) = rest.split_at_mut(bytes);
        simd.vectorize(Put { format, index, tile: &tile, columns, piece });
        rest = behind;
    }
}

/// A tile and the piece that it is written as.
struct Put<'p> {
    format: &'p PackedFormat,
    /// Index of each level in the table, if it is another number than the level.
    index: Option<&'p [u8; 256]>,
    tile: &'p Tile,
    columns: usize,
    piece: &'p mut [u8],
}

impl NullaryFnOnce for Put<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { format, index, tile, columns, piece } = self;
        let [bytes, nibbles, pairs, ones, scales, minimums, d, dmin] = format.parts(columns);
        let quads = tile.narrow[..columns / 4].as_flattened().as_flattened().as_chunks().0;
        let (plane, piece) = piece.split_at_mut(bytes);
        plane.copy_from_slice(&quads.as_flattened()[..bytes]);
        let (plane, piece) = piece.split_at_mut(nibbles);
        let mut indices = [[0; QUAD]; DEPTH / 4];
        let mut indexed = quads;
        if let Some(index) = index {
            for (indices, quad) in indices.iter_mut().zip(quads) {
                *indices = quad.map(
                    #[inline(always)]
                    |level| index[usize::from(level)],
                );
            }
            indexed = &indices[..columns / 4];
        }
        let mut shift = 0;
        for (two, plane) in indexed.as_chunks::<2>().0.iter().zip(plane.as_chunks_mut::<QUAD>().0) {
            for (i, byte) in plane.iter_mut().enumerate() {
                *byte = two[0][i] & 15 | two[1][i] << 4;
            }
            shift = 4;
        }
        let (plane, piece) = piece.split_at_mut(pairs);
        for (four, plane) in indexed.as_chunks::<4>().0.iter().zip(plane.as_chunks_mut::<QUAD>().0)
        {
            for (i, byte) in plane.iter_mut().enumerate() {
                let two = |q: usize| (four[q][i] >> shift & 3) << (2 * q);
                *byte = two(0) | two(1) | two(2) | two(3);
            }
        }
        let shift = shift + if pairs > 0 { 2 } else { 0 };
        let (plane, piece) = piece.split_at_mut(ones);
        for (quad, plane) in indexed.iter().zip(plane.as_chunks_mut::<{ QUAD / 8 }>().0) {
            for (eight, byte) in quad.as_chunks::<8>().0.iter().zip(plane) {
                *byte = (0..8).fold(0, |byte, i| byte | (eight[i] >> shift & 1) << i);
            }
        }
        let (out, piece) = piece.split_at_mut(scales);
        let pairs = out.as_chunks_mut::<2>().0.as_chunks_mut::<ROWS>().0;
        for (two, out) in tile.scales.as_chunks::<2>().0.iter().zip(pairs) {
            for (r, out) in out.iter_mut().enumerate() {
                *out = [two[0][r][0] as u8, two[1][r][0] as u8];
            }
        }
        let (out, piece) = piece.split_at_mut(minimums);
        let pairs = out.as_chunks_mut::<2>().0.as_chunks_mut::<ROWS>().0;
        for (two, out) in tile.minimums.iter().zip(pairs) {
            for (two, out) in two.iter().zip(out) {
                *out = two.map(|minimum| minimum as u8);
            }
        }
        let (d, dmin) = (piece.split_at_mut(d).0, dmin);
        put_scales(format, &tile.d, d);
        let start = piece.len() - dmin;
        put_scales(format, &tile.dmin, &mut piece[start..]);
    }
}

/// Writes scales of blocks as FP16 or FP32.
#[inline(always)]
fn put_scales(format: &PackedFormat, scales: &[[f32; ROWS]; 8], out: &mut [u8]) {
    let scales = scales.as_flattened();
    if format.halves {
        // They were FP16 before.
        for (scale, out) in scales.iter().zip(out.as_chunks_mut().0) {
            *out = f16::from_f32(*scale).to_le_bytes();
        }
    } else {
        for (scale, out) in scales.iter().zip(out.as_chunks_mut().0) {
            *out = scale.to_le_bytes();
        }
    }
}
