//! Matrix multiplication in integers: activations are quantized to 8 bits with a scale per block of the weight
//! type, and multiplied by the integer levels of the weights.
//!
//! For a row of weights and a row of activations, block by block in order:
//!
//! ```text
//! part = (d * a.d) * float(sum over g of s[g] * sum over i in g of (q[i] - ZERO) * a[i])
//! - (dmin * a.d) * float(sum over g of m[g] * sum over i in g of a[i])      with minima only
//! ```
//!
//! with the variables of [`gguf_quant::integers`]. The sums in parentheses are integers, exact in any order;
//! every float operation is one rounding to F32. Parts are added one after the other, so all kernels are
//! bit-exact to each other, for one token and for many.
//!
//! [`Kernels`] are dispatched by instruction set and type. `scalar.rs` is the specification.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod interleaved;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod packed;
mod quantized;
#[cfg(target_arch = "x86_64")]
mod reduce;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod strips;
#[cfg(test)]
mod tests;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tile;
#[cfg(target_arch = "x86_64")]
mod unsigned;

use std::sync::Arc;

use gguf::TensorType;
use gguf_quant::integers::{self, IntegerBlock};
#[cfg(target_arch = "x86_64")]
use gguf_store::Advice;
use rayon::prelude::*;

use super::{Input, MatmulContext};
use crate::columns::columns;
use crate::instructions::SimdToken;
use crate::matrix::Matrix;
#[cfg(target_arch = "x86_64")]
use crate::repack::{Packed, PackedFormat};
use crate::scratch::Scratch;
use crate::value::Value;
pub(crate) use quantized::QuantizedInput;
use quantized::{Epilogue, Quantized};

/// Rows of a tile.
const ROWS: usize = 16;

/// Maximum number of tokens that are multiplied row by row; for more tokens, weights are unpacked to tiles.
const FEW: usize = 4;

/// Rows that [`Kernels::rows`] computes together.
const LANES: usize = 16;

/// Bytes of weights per task: enough to amortize its start.
const TASK: usize = 1 << 15;

/// Prefetch distance in rows of the output.
const AHEAD: usize = 24;

/// Kernels of an instruction set for a weight type.
trait Kernels: Send + Sync {
    /// Returns the block length: activations of a block share a scale.
    fn len(&self) -> usize;

    /// Returns the group length: activations of a group are summed.
    fn group(&self) -> usize;

    /// Returns the additional data that [`Kernels::rows`] or, for more than [`FEW`] tokens, [`Kernels::tiles`]
    /// reads.
    fn epilogue(&self, _rows: usize) -> Epilogue {
        Epilogue::None
    }

    /// Multiplies rows of weights by up to [`FEW`] rows of activations: `out` has a row per row of weights.
    fn rows(&self, weights: &[u8], x: &Quantized, out: &mut [f32]);

    /// Repacks rows for [`Kernels::packed`]; `None` if there is no such kernel or no memory.
    #[cfg(target_arch = "x86_64")]
    fn pack(&self, _weights: &[u8], _row_bytes: usize) -> Option<Packed> {
        None
    }

    /// Returns the maximum number of tokens to multiply by repacked rows: unpacking to tiles pays for more.
    #[cfg(target_arch = "x86_64")]
    fn several(&self) -> usize {
        FEW
    }

    /// Multiplies strips of repacked rows by rows of activations: `out` has a row per row of weights.
    #[cfg(target_arch = "x86_64")]
    fn packed(&self, _format: &PackedFormat, _strips: &[u8], _x: &Quantized, _out: &mut [f32]) {}

    /// Returns the maximum number of tiles to multiply together.
    fn together(&self) -> usize {
        1
    }

    /// Multiplies up to [`Kernels::together`] tiles of [`ROWS`] rows of weights, the last of which may have
    /// fewer, by all activations: `out` gets [`ROWS`] numbers per row of activations, tile by tile.
    fn tiles(&self, weights: &[u8], x: &Quantized, out: &mut [[f32; ROWS]]);
}

/// Whether the weights of a type are integers with scales, which [`matmul`] multiplies in INT8.
pub(crate) fn multiplies_integers(ty: TensorType) -> bool {
    integers::visit(ty, scalar::Find).is_some()
}

/// Returns the kernels for a type; `None` if its weights are not integers.
fn kernels(ty: TensorType, by: SimdToken) -> Option<Box<dyn Kernels>> {
    match by {
        SimdToken::Scalar => integers::visit(ty, scalar::Find),
        #[cfg(target_arch = "x86_64")]
        SimdToken::Avx2(simd) => integers::visit(ty, avx2::Find(simd)),
        #[cfg(target_arch = "x86_64")]
        SimdToken::Avx512(simd, amx, _) => integers::visit(ty, avx512::Find(simd, amx)),
        #[cfg(target_arch = "aarch64")]
        SimdToken::Neon(dots, matrices) => integers::visit(ty, neon::Find { dots, matrices }),
    }
}

/// Computes `out = x W` with the rows of the matrix from `first` on. Returns false, and does nothing, if the
/// weights of the type are not integers.
pub(super) fn matmul(
    context: MatmulContext<'_>,
    matrix: &Matrix,
    first: usize,
    input: Input<'_>,
    out: &mut Value,
) -> bool {
    let Some(kernels) = kernels(matrix.codec.tensor_type(), context.simd) else { return false };
    let x = input.value;
    if x.rows == 0 {
        return true;
    }
    let outputs = out.width;
    #[cfg(target_arch = "x86_64")]
    if let Some(packed) = repacked(context, &*kernels, matrix, first, x.rows, outputs) {
        matmul_packed(context, &*kernels, packed, first, input, out);
        return true;
    }
    if x.rows <= FEW {
        matmul_few(context, &*kernels, matrix, first, input, out);
        return true;
    }
    let quantized = quantized(&*kernels, input, kernels.epilogue(x.rows));
    let weights = matrix.rows(first, outputs);
    let row_bytes = matrix.row_bytes;
    let fair = outputs.div_ceil(ROWS * rayon::current_num_threads());
    let rows = ROWS * kernels.together().min(fair);
    let tasks = columns(out, rows).zip(weights.par_chunks(rows * row_bytes));
    tasks.filter(|_| !context.watch.cancelled()).for_each(|(mut out, weights)| {
        let mut tiles = Scratch::new(weights.len().div_ceil(ROWS * row_bytes) * ROWS * x.rows);
        let tiles = tiles.as_chunks_mut::<ROWS>().0;
        kernels.tiles(weights, &quantized, tiles);
        for row in 0..x.rows {
            out.prefetch(row + AHEAD);
            let tiles = tiles.iter().skip(row).step_by(x.rows);
            for (out, tile) in out.row(row).chunks_mut(ROWS).zip(tiles) {
                match out.as_mut_array() {
                    // Avoids a call of memcpy for whole tiles.
                    Some(out) => *out = *tile,
                    None => out.copy_from_slice(&tile[..out.len()]),
                }
            }
        }
    });
    #[cfg(target_arch = "x86_64")]
    if matrix.repacked.existing().is_some() {
        // Otherwise both would stay in memory.
        matrix.advise(first, outputs, Advice::DontNeed);
    }
    true
}

/// Returns the quantized activations, from the cache if another product quantized them.
fn quantized(kernels: &dyn Kernels, input: Input<'_>, epilogue: Epilogue) -> Arc<Quantized> {
    let (len, group) = (kernels.len(), kernels.group());
    match input.quantized {
        Some(cache) => cache.get(input.value, len, group, epilogue),
        None => Arc::new(Quantized::new(input.value, len, group, epilogue)),
    }
}

/// Returns the repacked rows of the matrix, if it has them for this product. Repacks it after several products with
/// few tokens.
#[cfg(target_arch = "x86_64")]
fn repacked<'m>(
    context: MatmulContext<'_>,
    kernels: &dyn Kernels,
    matrix: &'m Matrix,
    first: usize,
    tokens: usize,
    outputs: usize,
) -> Option<&'m Packed> {
    let is_whole = first.is_multiple_of(ROWS)
        && (outputs.is_multiple_of(ROWS) || first + outputs == matrix.rows)
        && (matrix.rows_per_matrix.is_multiple_of(ROWS) || matrix.rows == matrix.rows_per_matrix);
    if !is_whole || tokens > kernels.several() {
        return None;
    }
    let matrices = matrix.rows / matrix.rows_per_matrix.max(1);
    matrix.repacked.get(matrix.bytes().len(), matrices, context.repack_budget, || {
        let packed = kernels.pack(matrix.bytes(), matrix.row_bytes)?;
        matrix.advise(0, matrix.rows, Advice::DontNeed);
        Some(packed)
    })
}

/// Multiplies repacked rows by some rows of activations.
#[cfg(target_arch = "x86_64")]
fn matmul_packed(
    context: MatmulContext<'_>,
    kernels: &dyn Kernels,
    packed: &Packed,
    first: usize,
    input: Input<'_>,
    out: &mut Value,
) {
    let (tokens, outputs) = (input.value.rows, out.width);
    let quantized = quantized(kernels, input, Epilogue::of_packed(tokens));
    let strips = (TASK / packed.strip_bytes()).max(1);
    by_columns(tokens, out, |columns| {
        let tasks = columns.par_chunks_mut(strips * ROWS * tokens);
        let tasks = tasks
            .zip(packed.strips(first, outputs).par_chunks(strips * packed.strip_bytes()))
            .filter(|_| !context.watch.cancelled());
        tasks.for_each(|(out, strips)| kernels.packed(&packed.format, strips, &quantized, out));
    });
}

/// Multiplies by up to [`FEW`] rows of activations.
fn matmul_few(
    context: MatmulContext<'_>,
    kernels: &dyn Kernels,
    matrix: &Matrix,
    first: usize,
    input: Input<'_>,
    out: &mut Value,
) {
    let (tokens, outputs) = (input.value.rows, out.width);
    let quantized = quantized(kernels, input, kernels.epilogue(tokens));
    let rows = (TASK / matrix.row_bytes).max(1).next_multiple_of(LANES);
    by_columns(tokens, out, |columns| {
        let tasks = columns.par_chunks_mut(rows * tokens);
        let tasks = tasks
            .zip(matrix.rows(first, outputs).par_chunks(rows * matrix.row_bytes))
            .filter(|_| !context.watch.cancelled());
        tasks.for_each(|(out, weights)| kernels.rows(weights, &quantized, out));
    });
}

/// Lets `multiply` write the columns of some tokens, `tokens` numbers per row of weights, and puts them into rows.
fn by_columns(tokens: usize, out: &mut Value, multiply: impl FnOnce(&mut [f32])) {
    // For one token, columns are rows.
    if tokens == 1 {
        return multiply(&mut out.data);
    }
    let mut columns = vec![0.0; tokens * out.width];
    multiply(&mut columns);
    transpose(tokens, &columns, out);
}

/// Writes the columns of several tokens as rows.
fn transpose(tokens: usize, columns: &[f32], out: &mut Value) {
    let width = out.width;
    for (row, out) in out.data.chunks_exact_mut(width).enumerate().take(columns.len()) {
        for (out, column) in out.iter_mut().zip(columns.chunks_exact(tokens)) {
            *out = column[row];
        }
    }
}

/// Returns the number of blocks of a row.
fn blocks<F: IntegerBlock>(x: &Quantized) -> usize {
    x.width / F::LEN
}
