//! GPTQ over a tile of rows: column-by-column rounding with error propagation, then coordinate
//! descent.

use gguf_quant::{Codec, CodecError};
use pulp::{Simd, WithSimd};

use crate::codebook::Metric;
use crate::lanes::{Lanes, ROWS, add_scaled, matmul, zip};
use crate::scales;
use crate::tile::Tile;

/// Number of columns per lazy update: errors are propagated one by one within a chunk, and together
/// to later columns.
const CHUNK: usize = 32;

/// Chooses scales and values of a block after all earlier blocks.
#[inline(always)]
pub(crate) fn round_block<S: Simd>(
    tile: &mut Tile<'_, S>,
    codec: &Codec,
    block: usize,
) -> Result<(), CodecError> {
    let (n, len) = (tile.objective.n(), tile.grid.len);
    let columns = block * len..(block + 1) * len;
    // Errors that the earlier columns propagate to this block.
    let mut propagated = vec![[0.0; ROWS]; len];
    let before = 0..columns.start;
    matmul(
        tile.simd,
        (&tile.objective.factor.r, n),
        columns.clone(),
        before.clone(),
        &tile.e[before],
        &mut propagated,
    );
    let mut desired = vec![0.0; ROWS * len];
    for (j, propagated) in propagated.iter().enumerate() {
        for row in 0..ROWS {
            desired[row * len + j] = tile.w[columns.start + j][row] + propagated[row];
        }
    }
    // Cost of a column's error if the later columns compensate it optimally.
    let weights = &tile.objective.factor.d[columns];
    let mut bytes = vec![0; ROWS * tile.grid.bytes];
    codec.encode_rows(&desired, Some(weights), &mut bytes)?;
    let blocks = bytes.chunks_exact(tile.grid.bytes);
    tile.params.push(blocks.map(|block| tile.grid.unpack_scales(block)).collect());
    tile.simd.vectorize(RoundColumns { tile, block, propagated: &propagated });
    Ok(())
}

/// [`round_columns`], compiled as one function.
struct RoundColumns<'r, 't, S> {
    tile: &'r mut Tile<'t, S>,
    block: usize,
    propagated: &'r [Lanes],
}

impl<S: Simd> WithSimd for RoundColumns<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn with_simd<Same: Simd>(self, _: Same) {
        round_columns(self.tile, self.block, self.propagated);
    }
}

/// Rounds column by column and propagates the error of each to the later columns.
#[inline(always)]
fn round_columns<S: Simd>(tile: &mut Tile<'_, S>, block: usize, propagated: &[Lanes]) {
    let (n, len) = (tile.objective.n(), tile.grid.len);
    let (start, step) = (block * len, if tile.codebook.is_some() { 8 } else { 1 });
    let r = &tile.objective.factor.r;
    for first in (0..len).step_by(CHUNK) {
        let end = len.min(first + CHUNK);
        let mut sums = [[0.0; ROWS]; CHUNK];
        let (columns, before) = (start + first..start + end, start..start + first);
        let out = &mut sums[..end - first];
        matmul(tile.simd, (r, n), columns, before.clone(), &tile.e[before], out);
        for j in (first..end).step_by(step) {
            let scaled = tile.scaled(block, j / tile.grid.group);
            let mut desired = [[0.0; ROWS]; 8];
            // Columns that are chosen together propagate errors among themselves one by one.
            let mut within = [[0.0; ROWS]; 8];
            for i in 0..step {
                let column = start + j + i;
                let row = &r[column * n + start + first..];
                let mut sum = zip(&propagated[j + i], &sums[j + i - first], |a, b| a + b);
                for (e, r) in tile.e[start + first..start + j].iter().zip(row) {
                    add_scaled(tile.simd, &mut sum, *r, e);
                }
                for (within, r) in within[..i].iter().zip(&row[j - first..]) {
                    add_scaled(tile.simd, &mut sum, -r, within);
                }
                within[i] = sum;
                desired[i] = zip(&tile.w[column], &sum, |w, sum| w + sum);
            }
            match tile.codebook {
                None => tile.set_level(start + j, &desired[0], &scaled),
                Some(codebook) => {
                    let metric =
                        Metric::with_compensation(tile.simd, &tile.objective.factor, start + j);
                    let slope = metric.times(&desired);
                    let down = tile.down(start + j);
                    let signs = codebook.signs_of(&metric, &desired, &scaled.0);
                    let found =
                        codebook.best_from(&metric, &desired, &slope, &scaled.0, signs, down);
                    tile.set_entries(start + j, &found, &scaled);
                }
            }
        }
    }
}

/// Re-chooses values, scales and values again, with all other blocks fixed.
#[inline(always)]
pub(crate) fn refine_block<S: Simd>(tile: &mut Tile<'_, S>, block: usize) {
    let (n, len) = (tile.objective.n(), tile.grid.len);
    let mut slope = vec![[0.0; ROWS]; len];
    let matrix = (&tile.objective.matrix[..], n);
    matmul(tile.simd, matrix, block * len..(block + 1) * len, 0..n, &tile.e, &mut slope);
    let simd = tile.simd;
    simd.vectorize(Sweep { tile: &mut *tile, block, slope: &mut slope });
    scales::fit(tile, block, &mut slope);
    simd.vectorize(Sweep { tile, block, slope: &mut slope });
}

/// [`sweep`], compiled as one function: inlined twice, the two would take several times as long to compile.
struct Sweep<'s, 't, S> {
    tile: &'s mut Tile<'t, S>,
    block: usize,
    slope: &'s mut [Lanes],
}

impl<S: Simd> WithSimd for Sweep<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn with_simd<Same: Simd>(self, _: Same) {
        sweep(self.tile, self.block, self.slope);
    }
}

/// Coordinate descent over the values of a block. `slope` is half of the error's negative
/// gradient.
#[inline(always)]
fn sweep<S: Simd>(tile: &mut Tile<'_, S>, block: usize, slope: &mut [Lanes]) {
    let (n, len) = (tile.objective.n(), tile.grid.len);
    let (start, step) = (block * len, if tile.codebook.is_some() { 8 } else { 1 });
    let matrix = &tile.objective.matrix;
    let mut scaled = tile.scaled(block, 0);
    for j in (0..len).step_by(step) {
        if j > 0 && j % tile.grid.group == 0 {
            scaled = tile.scaled(block, j / tile.grid.group);
        }
        let (mut old, mut weights) = ([[0.0; ROWS]; 8], [[0.0; ROWS]; 8]);
        for i in 0..step {
            old[i] = tile.e[start + j + i];
            weights[i] = zip(&tile.w[start + j + i], &old[i], |w, e| w - e);
        }
        match tile.codebook {
            None => {
                let inverse = 1.0 / matrix[(start + j) * n + start + j];
                let desired = zip(&weights[0], &slope[j], |w, slope| w + slope * inverse);
                tile.set_level(start + j, &desired, &scaled);
            }
            Some(codebook) => {
                let metric = Metric::without_compensation(tile.simd, matrix, n, start + j);
                let mut pull = metric.times(&weights);
                for (pull, slope) in pull.iter_mut().zip(&slope[j..]) {
                    *pull = zip(pull, slope, |pull, slope| pull + slope);
                }
                let down = tile.down(start + j);
                // Starting from the current signs, the cost cannot increase.
                let signs = tile.signs_at(start + j);
                let found = codebook.best_from(&metric, &weights, &pull, &scaled.0, signs, down);
                tile.set_entries(start + j, &found, &scaled);
            }
        }
        for (i, old) in old.iter().enumerate().take(step) {
            let column = start + j + i;
            let change = zip(&tile.e[column], old, |new, old| new - old);
            if change.iter().any(|change| *change != 0.0) {
                for (slope, square) in slope.iter_mut().zip(&matrix[column * n + start..]) {
                    add_scaled(tile.simd, slope, *square, &change);
                }
            }
        }
    }
}
