//! Scalar kernels: the specification, to which all others are bit-exact.

use std::marker::PhantomData;

use gguf_quant::integers::{Block, IntegerBlock, UnpackedBlock, Visitor};

use super::quantized::Quantized;
use super::{Kernels, ROWS, blocks};

/// Visitor that returns the kernels of a type.
pub(super) struct Find;

impl Visitor for Find {
    type Output = Box<dyn Kernels>;

    fn visit<F: IntegerBlock>(self) -> Self::Output {
        Box::new(Scalar::<F>(PhantomData))
    }
}

struct Scalar<F>(PhantomData<fn() -> F>);

impl<F: IntegerBlock> Kernels for Scalar<F> {
    fn len(&self) -> usize {
        F::LEN
    }

    fn group(&self) -> usize {
        F::GROUP
    }

    fn rows(&self, weights: &[u8], x: &Quantized, out: &mut [f32]) {
        let row_bytes = blocks::<F>(x) * F::BYTES;
        for (weights, out) in weights.chunks_exact(row_bytes).zip(out.chunks_exact_mut(x.rows)) {
            for (row, out) in out.iter_mut().enumerate() {
                *out = dot::<F>(weights, x, row);
            }
        }
    }

    fn tiles(&self, weights: &[u8], x: &Quantized, out: &mut [[f32; ROWS]]) {
        let row_bytes = blocks::<F>(x) * F::BYTES;
        for (r, weights) in weights.chunks_exact(row_bytes).enumerate() {
            for (row, out) in out.iter_mut().enumerate() {
                out[r] = dot::<F>(weights, x, row);
            }
        }
    }
}

/// Returns the product of a row of weights and a row of activations.
fn dot<F: IntegerBlock>(weights: &[u8], x: &Quantized, row: usize) -> f32 {
    let mut unpacked = UnpackedBlock::EMPTY;
    let mut sum = 0.0;
    for (b, block) in F::Block::all(weights).iter().enumerate() {
        F::unpack(pulp::Scalar, block, &mut unpacked);
        sum += part::<F>(&unpacked, x, row, b * F::LEN);
    }
    sum
}

/// Returns the part of a block.
fn part<F: IntegerBlock>(weights: &UnpackedBlock, x: &Quantized, row: usize, column: usize) -> f32 {
    let (levels, sums) = (x.levels(row, column, F::LEN), x.sums(row, column, F::LEN));
    let x_d = x.scales(row, column, F::LEN)[0];
    let groups = weights.levels.chunks_exact(F::GROUP).zip(levels.chunks_exact(F::GROUP));
    let (mut level_sums, mut minimum_sums) = (0, 0);
    for (g, (levels, x_blocks)) in groups.enumerate() {
        let pairs = levels.iter().zip(x_blocks);
        let products = pairs.map(|(weight, level)| signed::<F>(*weight) * i32::from(*level));
        level_sums += i32::from(weights.scales[g]) * products.sum::<i32>();
        minimum_sums += i32::from(weights.minimums[g]) * i32::from(sums[g]);
    }
    let part = weights.d * x_d * level_sums as f32;
    if F::MINIMUMS { part - weights.dmin * x_d * minimum_sums as f32 } else { part }
}

/// Returns a level minus the level of the weight 0.
fn signed<F: IntegerBlock>(level: u8) -> i32 {
    match F::MAX_LEVEL {
        Some(_) => i32::from(level) - i32::from(F::ZERO),
        None => i32::from(level as i8),
    }
}
