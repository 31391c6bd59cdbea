//! Weight repacking for a few tokens. [`PackedFormat`] describes the result.

use std::marker::PhantomData;

use gguf_quant::integers::{Block, ByteSimd, IntegerBlock, UnpackedBlock};
use half::{bf16, f16};
use pulp::NullaryFnOnce;
use rayon::prelude::*;

use super::ROWS;
use super::tile::{DEPTH, Tile};
use super::unsigned::Unsigned;
use crate::repack::{self, Packed, PackedFormat, ScaleType};
use crate::simd::V3F16c;

const _: () = assert!(repack::ROWS == ROWS && repack::DEPTH == DEPTH);

/// Bytes of levels of [`ROWS`] rows and four columns, in 8 bits.
pub(super) const QUAD: usize = 4 * ROWS;

/// Returns the bytes of levels of [`ROWS`] rows and 16 columns.
pub(super) const fn unit_bytes(bits: usize) -> usize {
    bits * QUAD / 2
}

/// Repacks rows; `None` if there is no memory for it.
pub(super) fn pack<F: IntegerBlock>(
    simd: V3F16c,
    weights: &[u8],
    row_bytes: usize,
) -> Option<Packed> {
    let format = format::<F>(simd, weights, row_bytes);
    pack_strips(simd, format, weights, row_bytes, &|tile, weights, first, blocks| {
        tile.unpack::<Unsigned<F, 0>>(simd, weights, row_bytes, first, blocks);
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
fn format<F: IntegerBlock>(simd: V3F16c, weights: &[u8], row_bytes: usize) -> PackedFormat {
    let levels = match F::MAX_LEVEL {
        Some(top) => (0..=top).collect(),
        None => levels(weights, row_bytes, &|row, found| {
            simd.vectorize(FindLevels { lookup: *simd, row, found, of: PhantomData::<fn() -> F> });
        }),
    };
    let highest = levels.iter().max().copied().unwrap_or(0);
    let bits = match (levels.len(), highest) {
        (..=4, ..=128) => 2,
        (..=8, ..=128) => 3,
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
        top: highest,
        table,
        zero: if F::MINIMUMS { 0 } else { Unsigned::<F, 0>::ZERO },
        minimums: F::MINIMUMS,
        scales: match F::F16_OFFSET {
            Some(_) => ScaleType::Fp16,
            None if F::POWER_OF_TWO => ScaleType::Bf16,
            None => ScaleType::Fp32,
        },
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
struct FindLevels<'r, L, F> {
    lookup: L,
    row: &'r [u8],
    found: &'r mut Levels,
    of: PhantomData<F>,
}

impl<F: IntegerBlock, L: ByteSimd> NullaryFnOnce for FindLevels<'_, L, fn() -> F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { lookup, row, found, .. } = self;
        let mut unpacked = UnpackedBlock::EMPTY;
        for block in F::Block::all(row) {
            Unsigned::<F, 0>::unpack(lookup, block, &mut unpacked);
            unpacked.levels[..F::LEN].iter().for_each(|level| found[usize::from(*level)] = true);
        }
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
        let [d, dmin] = format.head();
        let (out, piece) = piece.split_at_mut(d);
        put_scales(format, &tile.d[0], out);
        let (out, piece) = piece.split_at_mut(dmin);
        put_scales(format, &tile.dmin[0], out);
        let parts @ [scales, minimums, levels] = format.chunk();
        let quads = tile.narrow[..columns / 4].as_flattened().as_flattened();
        let units: &[[[u8; QUAD]; 4]] = quads.as_chunks().0.as_chunks().0;
        let units = units.chunks_exact(format.chunk_columns() / 16);
        let chunks = piece.chunks_exact_mut(parts.into_iter().sum());
        for (c, (units, chunk)) in units.zip(chunks).enumerate() {
            let (of_scales, chunk) = chunk.split_at_mut(scales);
            let (of_minimums, of_levels) = chunk.split_at_mut(minimums);
            if format.len == 256 {
                for (r, out) in of_scales.as_chunks_mut().0.iter_mut().enumerate() {
                    *out = [0, 1].map(|g| tile.scales[2 * c + g][r][0] as u8);
                }
                let of_rows = tile.minimums[c].iter().zip(of_minimums.as_chunks_mut().0);
                of_rows.for_each(|(two, out)| *out = two.map(|minimum| minimum as u8));
            } else {
                put_scales(format, &tile.d[c], of_scales);
                put_scales(format, &tile.dmin[c], of_minimums);
            }
            let out = of_levels[..levels].chunks_exact_mut(unit_bytes(format.bits));
            for (unit, out) in units.iter().zip(out) {
                put_levels(format.bits, index, unit, out);
            }
        }
    }
}

/// Writes the levels of 16 columns, or their indices, plane by plane.
#[inline(always)]
fn put_levels(bits: usize, index: Option<&[u8; 256]>, levels: &[[u8; QUAD]; 4], out: &mut [u8]) {
    let mut levels = *levels;
    if let Some(index) = index {
        levels = levels.map(
            #[inline(always)]
            |quad| {
                quad.map(
                    #[inline(always)]
                    |level| index[usize::from(level)],
                )
            },
        );
    }
    if bits == 8 {
        return out.copy_from_slice(levels.as_flattened());
    }
    let (nibbles, out) = out.split_at_mut((bits & 4) * QUAD / 2);
    for (two, plane) in levels.as_chunks::<2>().0.iter().zip(nibbles.as_chunks_mut::<QUAD>().0) {
        for (i, byte) in plane.iter_mut().enumerate() {
            *byte = two[0][i] & 15 | two[1][i] << 4;
        }
    }
    let (pairs, ones) = out.split_at_mut((bits & 2) * QUAD / 2);
    for plane in pairs.as_chunks_mut::<QUAD>().0 {
        let shift = bits & 4;
        for (i, byte) in plane.iter_mut().enumerate() {
            let two = |q: usize| (levels[q][i] >> shift & 3) << (2 * q);
            *byte = two(0) | two(1) | two(2) | two(3);
        }
    }
    let shift = bits & 6;
    for (quad, plane) in levels.iter().zip(ones.as_chunks_mut::<{ QUAD / 8 }>().0) {
        for (eight, byte) in quad.as_chunks::<8>().0.iter().zip(plane) {
            *byte = (0..8).fold(0, |byte, i| byte | (eight[i] >> shift & 1) << i);
        }
    }
}

/// Writes scales of blocks.
#[inline(always)]
fn put_scales(format: &PackedFormat, scales: &[f32; ROWS], out: &mut [u8]) {
    match format.scales {
        // They were FP16 before.
        ScaleType::Fp16 => {
            for (scale, out) in scales.iter().zip(out.as_chunks_mut().0) {
                *out = f16::from_f32(*scale).to_le_bytes();
            }
        }
        // Powers of two, also those below the normal range, have no more bits than these.
        ScaleType::Bf16 => {
            for (scale, out) in scales.iter().zip(out.as_chunks_mut().0) {
                *out = bf16::from_f32(*scale).to_le_bytes();
            }
        }
        ScaleType::Fp32 => {
            for (scale, out) in scales.iter().zip(out.as_chunks_mut().0) {
                *out = scale.to_le_bytes();
            }
        }
    }
}
