//! AMX: 32 rows of weights by 32 tokens, in four tiles of sums.

use pulp::x86::V4;
use pulp::{NullaryFnOnce, bytemuck, cast};
use rayon::prelude::*;

use super::parts::{split, step};
use super::{Job, ROWS, STEP};
use crate::amx::SIDE;
use crate::amx::bf16::{AmxBf16, Step, Sums, Tile};
use crate::avx512::V4Vnni;
use crate::matmul::floats::decode;
use crate::matrix::Matrix;
use crate::scratch::Scratch;
use crate::value::Value;

/// Approximate number of columns of a panel: the split weights of a task and the activations of 32 tokens fit
/// into the caches.
const PIECE: usize = 256;

/// Approximate number of columns of a panel for a few tokens: longer contiguous reads from memory.
const LONG: usize = 1024;

/// Number of F32 numbers in the memory of a tile.
const TILE: usize = size_of::<Tile>() / 4;

/// Computes `out = x W` with `W` parts of each weight and `X` parts of each activation.
pub(super) fn multiply<const W: usize, const X: usize>(
    simd: V4Vnni,
    amx: AmxBf16,
    job: Job<'_>,
    out: &mut Value,
) {
    let x = Activations::<X>::new(simd, job.x);
    job.share(out, |first, out| {
        simd.vectorize(Task::<W, X> { amx, matrix: job.matrix, first, x: &x, out });
    });
}

/// Parts of the activations, in the layout of the second factor.
struct Activations<const X: usize> {
    tokens: usize,
    /// Number of steps of a row.
    steps: usize,
    /// `[token / 16][step][part]`.
    tiles: Scratch,
}

impl<const X: usize> Activations<X> {
    fn new(simd: V4Vnni, x: &Value) -> Self {
        let (tokens, steps) = (x.rows, x.width.div_ceil(STEP));
        let mut tiles = Scratch::new(tokens.div_ceil(SIDE) * steps * X * TILE);
        let groups = tiles.par_chunks_mut((steps * X * TILE).max(1)).enumerate();
        groups.for_each(|(group, tiles)| simd.vectorize(Group::<X> { x, group, tiles }));
        Self { tokens, steps, tiles }
    }

    /// Returns the parts of 16 tokens from a step on: `[step][part]`.
    #[inline(always)]
    fn group(&self, group: usize, step: usize) -> &[[Tile; X]] {
        let tiles: &[Tile] = bytemuck::cast_slice(&self.tiles);
        &tiles.as_chunks().0[group * self.steps..][step..self.steps]
    }
}

/// Splits 16 tokens.
struct Group<'t, const X: usize> {
    x: &'t Value,
    group: usize,
    tiles: &'t mut [f32],
}

impl<const X: usize> NullaryFnOnce for Group<'_, X> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { x, group, tiles } = self;
        let tiles: &mut [Tile] = bytemuck::cast_slice_mut(tiles);
        tiles.fill([[0; STEP]; SIDE]);
        for (token, row) in (SIDE * group..x.rows).take(SIDE).enumerate() {
            let columns = x.row(row).chunks(STEP);
            for (columns, tiles) in columns.zip(tiles.as_chunks_mut::<X>().0) {
                for (part, tile) in split::<X>(&step(columns)).iter().zip(tiles) {
                    for (pair, row) in part.as_chunks::<2>().0.iter().zip(tile) {
                        row.as_chunks_mut().0[token] = *pair;
                    }
                }
            }
        }
    }
}

/// Some rows of weights with all tokens; `out` has a number per token and row.
struct Task<'t, const W: usize, const X: usize> {
    amx: AmxBf16,
    matrix: &'t Matrix,
    first: usize,
    x: &'t Activations<X>,
    out: &'t mut [f32],
}

impl<const W: usize, const X: usize> NullaryFnOnce for Task<'_, W, X> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { amx, matrix, first, x, out } = self;
        let tiles = amx.tiles().expect("no task waits for another while it has tiles");
        let rows = out.len() / x.tokens;
        let (blocks, groups) = (rows.div_ceil(ROWS), x.tokens.div_ceil(SIDE));
        let about = if groups == 1 { LONG } else { PIECE };
        let depth = piece(matrix, about.min(matrix.row_len)).next_multiple_of(STEP);
        let steps = depth / STEP;
        // `[block][step][part][row / 16]`.
        let mut weights = Scratch::new(blocks * steps * W * 2 * TILE);
        // `[block][token / 16][row / 16]`.
        let mut sums = Scratch::new(blocks * groups * 2 * TILE);
        sums.fill(0.0);
        let sums: &mut [[Sums; 2]] = bytemuck::cast_slice_mut(&mut sums);
        let mut columns = vec![0.0; depth];
        for start in (0..matrix.row_len).step_by(depth) {
            let columns = &mut columns[..depth.min(matrix.row_len - start)];
            let steps_here = columns.len().div_ceil(STEP);
            let weights: &mut [[Tile; 2]] = bytemuck::cast_slice_mut(&mut weights);
            let weights = weights.as_chunks_mut::<W>().0;
            for row in 0..rows {
                let weights = &mut weights[row / ROWS * steps..][..steps_here];
                unpack(matrix, first + row, start, columns, weights, row % ROWS);
            }
            let weights = &*weights;
            let (mut two, mut one) = (Vec::new(), Vec::new());
            for group in (0..groups).step_by(2) {
                let x_of = |group| &x.group(group, start / STEP)[..steps_here];
                for block in 0..blocks {
                    let weights = &weights[block * steps..][..steps_here];
                    let sums = &mut sums[block * groups..][..groups][group..];
                    if let Some(sums) = sums.first_chunk_mut() {
                        list(weights, [x_of(group), x_of(group + 1)], &mut two);
                        tiles.add_thirty_two(&two, sums);
                    } else {
                        list(weights, [x_of(group)], &mut one);
                        tiles.add_sixteen(&one, &mut sums[0]);
                    }
                }
            }
        }
        for (token, out) in out.chunks_exact_mut(rows).enumerate() {
            for (row, out) in out.iter_mut().enumerate() {
                let of_sixteen = &sums[row / ROWS * groups + token / SIDE][row % ROWS / SIDE];
                *out = of_sixteen[row % SIDE][token % SIDE];
            }
        }
    }
}

/// Splits weights of a row from a column on, as many as `columns` holds, into the layout of 32 rows. BF16
/// weights are copied.
#[inline(always)]
fn unpack<const W: usize>(
    matrix: &Matrix,
    row: usize,
    start: usize,
    columns: &mut [f32],
    weights: &mut [[[Tile; 2]; W]],
    place: usize,
) {
    let (half, place) = (place / SIDE, place % SIDE);
    if W == 1 {
        let bytes = &matrix.rows(row, 1)[2 * start..][..2 * columns.len()];
        for (bytes, weights) in bytes.chunks(2 * STEP).zip(weights) {
            weights[0][half][place] = cast(step::<u8, { 2 * STEP }>(bytes));
        }
        return;
    }
    decode::<V4>(matrix, row, start, columns);
    for (columns, weights) in columns.chunks(STEP).zip(weights) {
        for (part, weights) in split::<W>(&step(columns)).iter().zip(weights) {
            weights[half][place] = *part;
        }
    }
}

/// Returns the factors of all steps: first the first parts, then the pairs with one second part.
#[inline(always)]
fn list<'t, const W: usize, const X: usize, const T: usize>(
    weights: &'t [[[Tile; 2]; W]],
    x: [&'t [[Tile; X]]; T],
    list: &mut Vec<Step<'t, T>>,
) {
    list.clear();
    for (step, weights) in weights.iter().enumerate() {
        for (part, weights) in weights.iter().enumerate() {
            for x_blocks in 0..X - part {
                list.push(Step { weights, x: x.map(|x| &x[step][x_blocks]) });
            }
        }
    }
}

/// Number of columns of a panel: whole blocks of every type.
fn piece(matrix: &Matrix, about: usize) -> usize {
    (about / matrix.block_len).max(1) * matrix.block_len
}
