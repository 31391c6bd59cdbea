//! Weights once more in memory, in the order in which generating reads them: sixteen rows in lanes, and
//! levels in as few bits as they need.
//!
//! A strip is sixteen rows, and stands piece by piece of 256 columns, the last of which may be shorter:
//!
//! ```text
//! levels    planes of 8, 4, 2 or 1 bits, which together have `bits`, the lowest first
//! scales    i8, of types with blocks of 256: [group / 2][row][group % 2]
//! minimums  u8, likewise, of types that have them
//! d         [block][row], as halves if the type has them, else as floats
//! dmin      likewise, of types with minima
//! ```
//!
//! A plane of 4 bits has, for every four columns and the four after them, `[row][column]` of the first in the
//! low bits and of the others in the high bits; one of 2 bits has four times four columns in a byte, one
//! of 1 bit has a bit for each of these bytes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use gguf_quant::integers::{Block, ByteSimd, IntegerBlock, UnpackedBlock};
use half::f16;
use memmap2::MmapMut;
use rayon::prelude::*;

use super::tile::{DEPTH, Tile};
use super::unsigned::Unsigned;
use super::{Kernels, ROWS};
use crate::repacking::Repacking;
use crate::simd::V3Halves;
use crate::weight::Matrix;

/// Bytes of levels of [`ROWS`] rows and four columns, in 8 bits.
pub(super) const QUAD: usize = 4 * ROWS;

/// Products with few tokens before a matrix is packed: who asks for one result does not wait for it.
const BEFORE: u32 = 4;

/// How weights are packed.
pub(super) struct Form {
    /// Weights of a block: 32 or 256.
    pub len: usize,
    /// Weights that share an integer scale: 16 or 32.
    pub group: usize,
    /// Columns.
    pub width: usize,
    /// Bits of a level, or of its index in `table`: 2, 3, 4, 5, 6 or 8.
    pub bits: usize,
    /// Levels, if `bits` is at most 4.
    pub table: [u8; 16],
    /// The level of weight 0.
    pub zero: u8,
    /// Whether there are minima.
    pub minimums: bool,
    /// Whether `d` and `dmin` are halves.
    pub halves: bool,
}

/// What is stored of a piece. Parts that a form does not have are empty.
pub(super) struct Piece<'p> {
    /// Of 8, 4, 2 and 1 bits.
    pub planes: [&'p [u8]; 4],
    pub scales: &'p [u8],
    pub minimums: &'p [u8],
    pub d: &'p [u8],
    pub dmin: &'p [u8],
}

impl Form {
    /// The form of rows of a type, with as few bits as the levels in them need.
    fn of<F: IntegerBlock, L: ByteSimd + Sync>(
        lookup: L,
        weights: &[u8],
        row_bytes: usize,
    ) -> Self {
        let levels = match F::MAX_LEVEL {
            Some(top) => (0..=top).collect(),
            None => levels::<F, L>(lookup, weights, row_bytes),
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
        Self {
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

    /// Bytes of the parts of a piece: planes, scales, minima, `d`, `dmin`.
    #[inline(always)]
    fn parts(&self, columns: usize) -> [usize; 8] {
        let planes = [8, 4, 2, 1].map(|bits| (self.bits & bits) * columns * ROWS / 8);
        let large = if self.len == 256 { columns / self.group * ROWS } else { 0 };
        let d = columns / self.len * ROWS * if self.halves { 2 } else { 4 };
        let [a, b, c, e] = planes;
        let of_minimums = usize::from(self.minimums);
        [a, b, c, e, large, large * of_minimums, d, d * of_minimums]
    }

    /// Whether an index is the level itself.
    pub fn plain(&self) -> bool {
        (0..)
            .zip(&self.table)
            .take(1 << self.bits.min(4))
            .all(|(i, level)| i == *level || *level == 0)
    }

    /// Columns and bytes of the pieces of a strip.
    #[inline(always)]
    pub fn pieces(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.width).step_by(DEPTH).map(|start| {
            let columns = DEPTH.min(self.width - start);
            (columns, self.parts(columns).into_iter().sum())
        })
    }

    /// What stands in the bytes of a piece.
    #[inline(always)]
    pub fn piece<'p>(&self, columns: usize, mut bytes: &'p [u8]) -> Piece<'p> {
        let [a, b, c, e, scales, minimums, d, dmin] = self.parts(columns).map(
            #[inline(always)]
            |len| {
                let (part, rest) = bytes.split_at(len);
                bytes = rest;
                part
            },
        );
        Piece { planes: [a, b, c, e], scales, minimums, d, dmin }
    }
}

/// All levels that a type with a sign has in these rows, as long as they are few.
fn levels<F: IntegerBlock, L: ByteSimd + Sync>(
    lookup: L,
    weights: &[u8],
    row_bytes: usize,
) -> Vec<u8> {
    let found = weights.par_chunks(row_bytes).map(|row| {
        let mut found = [false; 256];
        let mut unpacked = UnpackedBlock::EMPTY;
        for block in F::Block::all(row) {
            Unsigned::<F>::unpack(lookup, block, &mut unpacked);
            unpacked.levels[..F::LEN].iter().for_each(|level| found[usize::from(*level)] = true);
        }
        found
    });
    let found = found.reduce(|| [false; 256], |a, b| std::array::from_fn(|i| a[i] | b[i]));
    (0..=255).filter(|level| found[usize::from(*level)]).collect()
}

/// Rows that are packed.
pub(crate) struct Packed {
    pub(super) form: Form,
    strip_bytes: usize,
    data: MmapMut,
}

impl Packed {
    /// Packs rows; `None` if there is no memory for it.
    pub(super) fn of<F: IntegerBlock, L: ByteSimd + Sync>(
        lookup: L,
        weights: &[u8],
        row_bytes: usize,
        fill: impl Fn(&Form, &[u8], &mut [u8]) + Sync,
    ) -> Option<Self> {
        let form = Form::of::<F, L>(lookup, weights, row_bytes);
        let strip_bytes: usize = form.pieces().map(|(_, bytes)| bytes).sum();
        let strips = weights.len().div_ceil(ROWS * row_bytes);
        let mut data = MmapMut::map_anon(strips * strip_bytes).ok()?;
        #[cfg(target_os = "linux")]
        // Fewer pages are found faster. Without them it works as well.
        let _ = data.advise(memmap2::Advice::HugePage);
        let filled = data.par_chunks_exact_mut(strip_bytes);
        let filled = filled.zip(weights.par_chunks(ROWS * row_bytes));
        filled.for_each(|(strip, weights)| fill(&form, weights, strip));
        Some(Self { form, strip_bytes, data })
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Bytes of a strip.
    pub(super) fn strip_bytes(&self) -> usize {
        self.strip_bytes
    }

    /// The strips of rows, the first of which begins one.
    pub(super) fn strips(&self, first: usize, rows: usize) -> &[u8] {
        let start = first / ROWS * self.strip_bytes;
        &self.data[start..start + rows.div_ceil(ROWS) * self.strip_bytes]
    }
}

/// A matrix, packed once it has been multiplied with few tokens several times.
#[derive(Default)]
pub(crate) struct Lazily {
    uses: AtomicU32,
    packed: OnceLock<Packed>,
}

impl Lazily {
    /// The packed matrix, if it is packed, which may happen now.
    pub(super) fn get(
        &self,
        kernels: &dyn Kernels,
        matrix: &Matrix,
        repacking: &Repacking,
    ) -> Option<&Packed> {
        // Who counts this far packs it; nobody waits, since who waits in a pool of threads might do the
        // work of others, who wait as well.
        if self.packed.get().is_none()
            && self.uses.fetch_add(1, Ordering::Relaxed) == BEFORE
            && (matrix.rows_of_one.is_multiple_of(ROWS) || matrix.rows == matrix.rows_of_one)
            && repacking.take(matrix.bytes().len())
            && let Some(packed) = kernels.pack(matrix.bytes(), matrix.row_bytes)
        {
            repacking.add(packed.bytes());
            let _ = self.packed.set(packed);
        }
        self.packed.get()
    }
}

/// Packs the rows of a strip.
#[inline(always)]
pub(super) fn fill<F: IntegerBlock>(simd: V3Halves, form: &Form, weights: &[u8], strip: &mut [u8]) {
    let mut index: [u8; 256] = std::array::from_fn(
        #[inline(always)]
        |level| level as u8,
    );
    if form.bits <= 4 {
        for (i, level) in form.table.iter().enumerate().rev() {
            index[usize::from(*level)] = i as u8;
        }
    }
    let row_bytes = form.width / F::LEN * F::BYTES;
    let mut tile = Box::new(Tile::EMPTY);
    let (mut first, mut rest) = (0, strip);
    for (columns, bytes) in form.pieces() {
        let blocks = columns / F::LEN;
        tile.unpack::<Unsigned<F>>(simd, weights, row_bytes, first, blocks);
        first += blocks;
        let (piece, behind) = rest.split_at_mut(bytes);
        put(form, &index, &tile, columns, piece);
        rest = behind;
    }
}

/// Puts a tile where a piece is.
#[inline(always)]
fn put(form: &Form, index: &[u8; 256], tile: &Tile, columns: usize, piece: &mut [u8]) {
    let [bytes, nibbles, pairs, ones, scales, minimums, d, dmin] = form.parts(columns);
    let quads = tile.narrow[..columns / 4].as_flattened().as_flattened().as_chunks().0;
    let (plane, piece) = piece.split_at_mut(bytes);
    plane.copy_from_slice(&quads.as_flattened()[..bytes]);
    let (plane, piece) = piece.split_at_mut(nibbles);
    let mut indexed = [[0; QUAD]; DEPTH / 4];
    for (indexed, quad) in indexed.iter_mut().zip(quads) {
        *indexed = quad.map(
            #[inline(always)]
            |level| index[usize::from(level)],
        );
    }
    let indexed = &indexed[..columns / 4];
    let mut shift = 0;
    for (two, plane) in indexed.as_chunks::<2>().0.iter().zip(plane.as_chunks_mut::<QUAD>().0) {
        for (i, byte) in plane.iter_mut().enumerate() {
            *byte = two[0][i] & 15 | two[1][i] << 4;
        }
        shift = 4;
    }
    let (plane, piece) = piece.split_at_mut(pairs);
    for (four, plane) in indexed.as_chunks::<4>().0.iter().zip(plane.as_chunks_mut::<QUAD>().0) {
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
    put_scales(form, &tile.d, d);
    let start = piece.len() - dmin;
    put_scales(form, &tile.dmin, &mut piece[start..]);
}

/// Puts scales of blocks as halves or floats.
#[inline(always)]
fn put_scales(form: &Form, scales: &[[f32; ROWS]; 8], out: &mut [u8]) {
    let scales = scales.as_flattened();
    if form.halves {
        // They were halves.
        for (scale, out) in scales.iter().zip(out.as_chunks_mut().0) {
            *out = f16::from_f32(*scale).to_le_bytes();
        }
    } else {
        for (scale, out) in scales.iter().zip(out.as_chunks_mut().0) {
            *out = scale.to_le_bytes();
        }
    }
}
