//! Kernels for AVX2.

mod dots;
pub(super) mod rows;
mod scales;
pub(super) mod sums;
mod tiles;

use std::marker::PhantomData;

use gguf_quant::integers::{IntegerBlock, Visitor};
use pulp::NullaryFnOnce;

use super::rounded::{Also, Rounded};
use super::{FEW, Kernels, ROWS};
use crate::simd::V3Halves;
use rows::Rows;

/// Finds the kernels of a type.
pub(super) struct Find(pub V3Halves);

impl Visitor for Find {
    type Output = Box<dyn Kernels>;

    fn visit<F: IntegerBlock>(self) -> Self::Output {
        Box::new(Avx2::<F>(self.0, PhantomData))
    }
}

struct Avx2<F>(V3Halves, PhantomData<fn() -> F>);

impl<F: IntegerBlock> Kernels for Avx2<F> {
    fn len(&self) -> usize {
        F::LEN
    }

    fn group(&self) -> usize {
        F::GROUP
    }

    fn also(&self, rows: usize) -> Also {
        match F::MAX_LEVEL {
            _ if rows <= FEW => rows::also::<F>(),
            None => Also::Wide,
            Some(_) => Also::Nothing,
        }
    }

    fn rows(&self, weights: &[u8], x: &Rounded, out: &mut [f32]) {
        self.0.vectorize(Rows::<F> { simd: self.0, weights, x, out, of: PhantomData });
    }

    fn tiles(&self, weights: &[u8], x: &Rounded, out: &mut [[f32; ROWS]]) {
        self.0.vectorize(Tiles::<F> { simd: self.0, weights, x, out, of: PhantomData });
    }
}

// No closure: what is not inlined into `vectorize` would not be compiled for AVX2.

struct Tiles<'r, F> {
    simd: V3Halves,
    weights: &'r [u8],
    x: &'r Rounded,
    out: &'r mut [[f32; ROWS]],
    of: PhantomData<fn() -> F>,
}

impl<F: IntegerBlock> NullaryFnOnce for Tiles<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        tiles::tile::<F>(self.simd, self.weights, self.x, self.out);
    }
}
