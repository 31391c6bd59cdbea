//! AMX: 32 rows of weights with 32 tokens at once, in four tiles of sums.

use pulp::{NullaryFnOnce, bytemuck, cast};
use rayon::prelude::*;

use super::parts::{split, step};
use super::{Job, ROWS, STEP};
use crate::amx::SIDE;
use crate::amx::brain::{AmxBrain, Step, Sums, Tile};
use crate::avx512::V4Products;
use crate::product::floats::decode;
use crate::scratch::Scratch;
use crate::value::Value;
use crate::weight::Matrix;

/// Columns of a piece, about: split weights of a task and activations of 32 tokens stay in caches.
const PIECE: usize = 256;

/// The same for a few tokens: weights are read from memory in longer runs.
const LONG: usize = 1024;

/// Numbers of F32 that take as much memory as a tile.
const TILE: usize = size_of::<Tile>() / 4;

/// `out = x W`, with `W` parts of each weight and `X` of each activation.
pub(super) fn multiply<const W: usize, const X: usize>(
    simd: V4Products,
    amx: AmxBrain,
    job: Job<'_>,
    out: &mut Value,
) {
    let x = Activations::<X>::new(simd, job.x);
    job.share(out, |first, out| {
        simd.vectorize(Task::<W, X> { amx, matrix: job.matrix, first, x: &x, out });
    });
}

/// The parts of activations, as the second factor of products.
struct Activations<const X: usize> {
    tokens: usize,
    /// Of a row.
    steps: usize,
    /// `[token / 16][step][part]`.
    tiles: Scratch,
}

impl<const X: usize> Activations<X> {
    fn new(simd: V4Products, x: &Value) -> Self {
        let (tokens, steps) = (x.rows, x.width.div_ceil(STEP));
        let mut tiles = Scratch::new(tokens.div_ceil(SIDE) * steps * X * TILE);
        let groups = tiles.par_chunks_mut((steps * X * TILE).max(1)).enumerate();
        groups.for_each(|(group, tiles)| simd.vectorize(Group::<X> { x, group, tiles }));
        Self { tokens, steps, tiles }
    }

    /// The parts of 16 tokens from a step on: `[step][part]`.
    #[inline(always)]
    fn group(&self, group: usize, step: usize) -> &[[Tile; X]] {
        let tiles: &[Tile] = bytemuck::cast_slice(&self.tiles);
        &tiles.as_chunks().0[group * self.steps..][step..self.steps]
    }
}

/// 16 tokens that are split.
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

/// Some rows of weights with all tokens; of each token `out` has a number for each row.
struct Task<'t, const W: usize, const X: usize> {
    amx: AmxBrain,
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

/// Splits weights of a row, from a column on as many as `columns` holds, into their places: those of a
/// row of 32. What is stored in BF16 is copied.
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
    decode(matrix, row, start, columns);
    for (columns, weights) in columns.chunks(STEP).zip(weights) {
        for (part, weights) in split::<W>(&step(columns)).iter().zip(weights) {
            weights[half][place] = *part;
        }
    }
}

/// What is multiplied with one another: step by step the first parts, then those of which one is the
/// second.
#[inline(always)]
fn list<'t, const W: usize, const X: usize, const T: usize>(
    weights: &'t [[[Tile; 2]; W]],
    x: [&'t [[Tile; X]]; T],
    list: &mut Vec<Step<'t, T>>,
) {
    list.clear();
    for (step, weights) in weights.iter().enumerate() {
        for (part, weights) in weights.iter().enumerate() {
            for of_x in 0..X - part {
                list.push(Step { weights, x: x.map(|x| &x[step][of_x]) });
            }
        }
    }
}

/// Columns of a piece: whole blocks of every type.
fn piece(matrix: &Matrix, about: usize) -> usize {
    (about / matrix.block_len).max(1) * matrix.block_len
}
