//! Kernels for NEON with INT8 dot products, and with INT8 matrix products where the processor has them.

mod rows;
mod tiles;

use std::marker::PhantomData;

use gguf_quant::integers::{IntegerBlock, Visitor};
use pulp::NullaryFnOnce;

use super::quantized::Quantized;
use super::{FEW, Kernels, ROWS};
use crate::neon::{NeonDot, NeonMatrix};

/// Visitor that returns the kernels of a type.
#[derive(Clone, Copy)]
pub(super) struct Find {
    pub dots: NeonDot,
    pub matrices: Option<NeonMatrix>,
}

impl Visitor for Find {
    type Output = Box<dyn Kernels>;

    fn visit<F: IntegerBlock>(self) -> Self::Output {
        Box::new(Neon::<F>(self, PhantomData))
    }
}

struct Neon<F>(Find, PhantomData<fn() -> F>);

impl<F: IntegerBlock> Kernels for Neon<F> {
    fn len(&self) -> usize {
        F::LEN
    }

    fn group(&self) -> usize {
        F::GROUP
    }

    fn rows(&self, weights: &[u8], x: &Quantized, out: &mut [f32]) {
        let simd = self.0.dots;
        simd.vectorize(Rows::<F> { simd, weights, x, out, of: PhantomData });
    }

    fn tiles(&self, weights: &[u8], x: &Quantized, out: &mut [[f32; ROWS]]) {
        match self.0.matrices {
            Some(simd) => {
                simd.vectorize(Tiles::<F, _, 8> { simd, weights, x, out, of: PhantomData });
            }
            None => {
                let simd = self.0.dots;
                simd.vectorize(Tiles::<F, _, 4> { simd, weights, x, out, of: PhantomData });
            }
        }
    }
}

// Structs instead of closures: only code that is inlined into `vectorize` is compiled for these instructions.

struct Rows<'r, F> {
    simd: NeonDot,
    weights: &'r [u8],
    x: &'r Quantized,
    out: &'r mut [f32],
    of: PhantomData<fn() -> F>,
}

impl<F: IntegerBlock> NullaryFnOnce for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, weights, x, out, .. } = self;
        match x.rows {
            1 => rows::rows::<F, 1>(simd, weights, x, out),
            _ => rows::rows::<F, FEW>(simd, weights, x, out),
        }
    }
}

struct Tiles<'r, F, S, const SIDE: usize> {
    simd: S,
    weights: &'r [u8],
    x: &'r Quantized,
    out: &'r mut [[f32; ROWS]],
    of: PhantomData<fn() -> F>,
}

impl<F, S, const SIDE: usize> NullaryFnOnce for Tiles<'_, F, S, SIDE>
where
    F: IntegerBlock,
    S: tiles::Products<SIDE>,
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        tiles::tile::<F, S, SIDE>(self.simd, self.weights, self.x, self.out);
    }
}
