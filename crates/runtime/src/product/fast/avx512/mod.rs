//! Kernels for AVX-512 with VNNI.

mod rows;
mod tiles;
mod unsigned;

use std::marker::PhantomData;

use gguf_quant::integers::{Integers, Visitor};
use pulp::NullaryFnOnce;

use super::avx2::rows::rows;
use super::rounded::Rounded;
use super::{FEW, Kernels, ROWS};
use crate::avx512::V4Products;
use unsigned::Unsigned;

/// Finds the kernels of a type.
pub(super) struct Find(pub V4Products);

impl Visitor for Find {
    type Output = Box<dyn Kernels>;

    fn visit<F: Integers>(self) -> Self::Output {
        Box::new(Avx512::<F>(self.0, PhantomData))
    }
}

struct Avx512<F>(V4Products, PhantomData<fn() -> F>);

impl<F: Integers> Kernels for Avx512<F> {
    fn len(&self) -> usize {
        F::LEN
    }

    fn group(&self) -> usize {
        F::GROUP
    }

    fn rows(&self, weights: &[u8], x: &Rounded, out: &mut [f32]) {
        self.0.vectorize(Rows::<F> { simd: self.0, weights, x, out, of: PhantomData });
    }

    fn tile(&self, weights: &[u8], x: &Rounded, out: &mut [[f32; ROWS]]) {
        self.0.vectorize(Tiles::<F> { simd: self.0, weights, x, out, of: PhantomData });
    }
}

struct Rows<'r, F> {
    simd: V4Products,
    weights: &'r [u8],
    x: &'r Rounded,
    out: &'r mut [f32],
    of: PhantomData<fn() -> F>,
}

impl<F: Integers> NullaryFnOnce for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, weights, x, out, .. } = self;
        match x.rows {
            1 => rows::<F, _, 1>(simd, weights, x, out),
            _ => rows::<F, _, FEW>(simd, weights, x, out),
        }
    }
}

struct Tiles<'r, F> {
    simd: V4Products,
    weights: &'r [u8],
    x: &'r Rounded,
    out: &'r mut [[f32; ROWS]],
    of: PhantomData<fn() -> F>,
}

impl<F: Integers> NullaryFnOnce for Tiles<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        tiles::tile::<Unsigned<F>>(self.simd, self.weights, self.x, self.out);
    }
}
