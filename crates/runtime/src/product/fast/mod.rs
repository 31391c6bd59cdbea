//! Products in small integers: activations are rounded to 8 bits with a scale for each block of the
//! weights' type, and multiplied with the levels of the weights.
//!
//! Of a row of weights and a row of activations, block by block in their order:
//!
//! ```text
//! part = (d * a.d) * float(sum over g of s[g] * sum over i in g of (q[i] - ZERO) * a[i])
//!      - (dmin * a.d) * float(sum over g of m[g] * sum over i in g of a[i])      with minima only
//! ```
//!
//! with the letters of [`gguf_quant::integers`]. The sums in brackets are integers, exact in any
//! order; every operation with floats is one rounding to F32. Parts are added one after the other, so
//! each kernel gives the same bits, for one token and for many.
//!
//! Kernels are found by instruction set and type: [`Kernels`]. `scalar.rs` is the specification.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod packed;
mod rounded;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tile;
#[cfg(target_arch = "x86_64")]
mod unsigned;

use std::sync::Arc;

use gguf::TensorType;
use gguf_quant::integers::{self, IntegerBlock};
use rayon::prelude::*;

use super::{How, Input};
use crate::columns::columns;
use crate::instructions::Proof;
use crate::scratch::Scratch;
use crate::value::Value;
use crate::weight::Matrix;
#[cfg(target_arch = "x86_64")]
pub(crate) use packed::Lazily;
#[cfg(target_arch = "x86_64")]
use packed::{Form, Packed};
pub(crate) use rounded::Kept;
use rounded::{Also, Rounded};

/// Rows of a tile.
const ROWS: usize = 16;

/// Tokens that are multiplied row by row; with more of them weights are unpacked by tiles.
const FEW: usize = 4;

/// Rows that [`Kernels::rows`] takes together where there are so many.
const LANES: usize = 16;

/// Bytes of weights that one task reads: enough to make its start cheap.
const TASK: usize = 1 << 15;

/// Rows of results that are asked for ahead of the one that is written.
const AHEAD: usize = 24;

/// What an instruction set does with the rows of a type.
trait Kernels: Send + Sync {
    /// Weights of a block, whose activations have a scale.
    fn len(&self) -> usize;

    /// Weights whose activations are summed.
    fn group(&self) -> usize;

    /// What [`Kernels::rows`] or, for more than [`FEW`] rows, [`Kernels::tiles`] reads besides.
    fn also(&self, _rows: usize) -> Also {
        Also::Nothing
    }

    /// The products of rows of weights with up to [`FEW`] rows of activations: `out` has a row for
    /// each row of weights.
    fn rows(&self, weights: &[u8], x: &Rounded, out: &mut [f32]);

    /// Packs rows for [`Kernels::packed`]; `None` if there is none of it here, or no memory.
    #[cfg(target_arch = "x86_64")]
    fn pack(&self, _weights: &[u8], _row_bytes: usize) -> Option<Packed> {
        None
    }

    /// The same as [`Kernels::rows`] with strips of packed rows.
    #[cfg(target_arch = "x86_64")]
    fn packed(&self, _form: &Form, _strips: &[u8], _x: &Rounded, _out: &mut [f32]) {}

    /// Tiles that are multiplied together at most.
    fn together(&self) -> usize {
        1
    }

    /// The products of up to [`Kernels::together`] tiles of [`ROWS`] rows of weights, the last of which may have
    /// fewer, with all activations: `out` gets [`ROWS`] numbers for each row of activations, tile by tile.
    fn tiles(&self, weights: &[u8], x: &Rounded, out: &mut [[f32; ROWS]]);
}

/// The kernels for a type; `None` if its weights are not integers.
fn kernels(ty: TensorType, by: Proof) -> Option<Box<dyn Kernels>> {
    match by {
        Proof::Scalar => integers::visit(ty, scalar::Find),
        #[cfg(target_arch = "x86_64")]
        Proof::Avx2(simd) => integers::visit(ty, avx2::Find(simd)),
        #[cfg(target_arch = "x86_64")]
        Proof::Avx512(simd, amx, _) => integers::visit(ty, avx512::Find(simd, amx)),
        #[cfg(target_arch = "aarch64")]
        Proof::Neon(dots, matrices) => integers::visit(ty, neon::Find { dots, matrices }),
    }
}

/// `out = x W`, with the rows of the matrix from `first` on; false, and nothing done, if the type is
/// none of integers.
pub(super) fn multiply(
    how: How<'_>,
    matrix: &Matrix,
    first: usize,
    input: Input<'_>,
    out: &mut Value,
) -> bool {
    let Some(kernels) = kernels(matrix.codec.tensor_type(), how.instructions) else { return false };
    let x = input.value;
    if x.rows == 0 {
        return true;
    }
    let outputs = out.width;
    if x.rows <= FEW {
        multiply_few(how, &*kernels, matrix, first, input, out);
        return true;
    }
    let rounded = rounded(&*kernels, input, kernels.also(x.rows));
    let weights = matrix.rows(first, outputs);
    let row_bytes = matrix.row_bytes;
    let fair = outputs.div_ceil(ROWS * rayon::current_num_threads());
    let rows = ROWS * kernels.together().min(fair);
    let tasks = columns(out, rows).zip(weights.par_chunks(rows * row_bytes));
    tasks.filter(|_| !how.watch.ended()).for_each(|(mut out, weights)| {
        let mut tiles = Scratch::new(weights.len().div_ceil(ROWS * row_bytes) * ROWS * x.rows);
        let tiles = tiles.as_chunks_mut::<ROWS>().0;
        kernels.tiles(weights, &rounded, tiles);
        for row in 0..x.rows {
            out.ask_for(row + AHEAD);
            let tiles = tiles.iter().skip(row).step_by(x.rows);
            for (out, tile) in out.row(row).chunks_mut(ROWS).zip(tiles) {
                match out.as_mut_array() {
                    // No call where a tile is whole.
                    Some(out) => *out = *tile,
                    None => out.copy_from_slice(&tile[..out.len()]),
                }
            }
        }
    });
    true
}

/// Activations as kernels read them: those that another product has rounded, if there are such.
fn rounded(kernels: &dyn Kernels, input: Input<'_>, also: Also) -> Arc<Rounded> {
    let (len, group) = (kernels.len(), kernels.group());
    match input.kept {
        Some(kept) => kept.rounded(input.value, len, group, also),
        None => Arc::new(Rounded::new(input.value, len, group, also)),
    }
}

/// The same with up to [`FEW`] rows of activations.
fn multiply_few(
    how: How<'_>,
    kernels: &dyn Kernels,
    matrix: &Matrix,
    first: usize,
    input: Input<'_>,
    out: &mut Value,
) {
    let x = input.value;
    let (tokens, outputs) = (x.rows, out.width);
    let mut turned = Vec::new();
    // Of one token columns are rows.
    let columns = if tokens == 1 {
        &mut out.data
    } else {
        turned.resize(tokens * outputs, 0.0);
        &mut turned
    };
    #[cfg(target_arch = "x86_64")]
    if first.is_multiple_of(ROWS)
        && (outputs.is_multiple_of(ROWS) || first + outputs == matrix.rows)
        && let Some(packed) = matrix.packed.get(kernels, matrix, how.repacking)
    {
        let rounded = rounded(kernels, input, Also::Nothing);
        let strips = (TASK / packed.strip_bytes()).max(1);
        let tasks = columns.par_chunks_mut(strips * ROWS * tokens);
        let tasks = tasks
            .zip(packed.strips(first, outputs).par_chunks(strips * packed.strip_bytes()))
            .filter(|_| !how.watch.ended());
        tasks.for_each(|(out, strips)| kernels.packed(&packed.form, strips, &rounded, out));
        return turn(tokens, &turned, out);
    }
    let rounded = rounded(kernels, input, kernels.also(tokens));
    let rows = (TASK / matrix.row_bytes).max(1).next_multiple_of(LANES);
    let tasks = columns.par_chunks_mut(rows * tokens);
    let tasks = tasks
        .zip(matrix.rows(first, outputs).par_chunks(rows * matrix.row_bytes))
        .filter(|_| !how.watch.ended());
    tasks.for_each(|(out, weights)| kernels.rows(weights, &rounded, out));
    turn(tokens, &turned, out);
}

/// Puts columns of several tokens where their rows are.
fn turn(tokens: usize, columns: &[f32], out: &mut Value) {
    let width = out.width;
    for (row, out) in out.data.chunks_exact_mut(width).enumerate().take(columns.len()) {
        for (out, column) in out.iter_mut().zip(columns.chunks_exact(tokens)) {
            *out = column[row];
        }
    }
}

/// Blocks of a row.
fn blocks<F: IntegerBlock>(x: &Rounded) -> usize {
    x.width / F::LEN
}
