//! Kernels for AVX2.

mod dots;
mod lanes;
pub(super) mod rows;
mod scales;
mod tiles;

use std::marker::PhantomData;

use gguf_quant::integers::{IntegerBlock, Visitor};
use pulp::NullaryFnOnce;
use rows::Rows;

use super::packed::pack;
use super::quantized::{Epilogue, Quantized};
use super::strips::Strips;
use super::unsigned::Unsigned;
use super::{FEW, Kernels, ROWS};
use crate::repack::{Packed, PackedFormat};
use crate::simd::V3F16c;

/// Visitor that returns the kernels of a type.
pub(super) struct Find(pub V3F16c);

impl Visitor for Find {
    type Output = Box<dyn Kernels>;

    fn visit<F: IntegerBlock>(self) -> Self::Output {
        Box::new(Avx2::<F>(self.0, PhantomData))
    }
}

struct Avx2<F>(V3F16c, PhantomData<fn() -> F>);

impl<F: IntegerBlock> Kernels for Avx2<F> {
    fn len(&self) -> usize {
        F::LEN
    }

    fn group(&self) -> usize {
        F::GROUP
    }

    fn epilogue(&self, rows: usize) -> Epilogue {
        match rows {
            ..=FEW => rows::epilogue::<F>(),
            _ => Epilogue::None,
        }
    }

    fn rows(&self, weights: &[u8], x: &Quantized, out: &mut [f32]) {
        self.0.vectorize(Rows::<F> { simd: self.0, weights, x, out, of: PhantomData });
    }

    fn pack(&self, weights: &[u8], row_bytes: usize) -> Option<Packed> {
        pack::<F>(self.0, weights, row_bytes)
    }

    fn several(&self) -> usize {
        24
    }

    fn packed(&self, format: &PackedFormat, strips: &[u8], x: &Quantized, out: &mut [f32]) {
        Strips { simd: self.0, format, strips, x, out }.multiply();
    }

    fn tiles(&self, weights: &[u8], x: &Quantized, out: &mut [[f32; ROWS]]) {
        let simd = self.0;
        if const { is_narrow::<F>() } {
            simd.vectorize(Tiles::<Unsigned<F, 0>> { simd, weights, x, out, of: PhantomData });
        } else {
            simd.vectorize(Tiles::<F> { simd, weights, x, out, of: PhantomData });
        }
    }
}

/// Whether two products of unsigned levels fit into 16 bits; signed ones are [`Unsigned`] then.
const fn is_narrow<F: IntegerBlock>() -> bool {
    F::MAX_LEVEL.is_some() || F::MAX_MAGNITUDE < 64
}

// Structs instead of closures: only code that is inlined into `vectorize` is compiled for AVX2.

struct Tiles<'r, F> {
    simd: V3F16c,
    weights: &'r [u8],
    x: &'r Quantized,
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
