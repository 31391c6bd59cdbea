//! Kernels for AVX-512 with VNNI, and with AMX.

mod groups;
mod lanes;
mod tiles;

use std::marker::PhantomData;

use gguf_quant::integers::{IntegerBlock, Visitor};
use pulp::NullaryFnOnce;

use super::avx2::rows::Rows;
use super::packed::pack;
use super::quantized::{Epilogue, Quantized};
use super::strips::Strips;
use super::unsigned::Unsigned;
use super::{FEW, Kernels, ROWS, avx2};
use crate::amx::Amx;
use crate::avx512::V4Vnni;
use crate::repack::{Packed, PackedFormat};

/// Visitor that returns the kernels of a type.
pub(super) struct Find(pub V4Vnni, pub Option<Amx>);

impl Visitor for Find {
    type Output = Box<dyn Kernels>;

    fn visit<F: IntegerBlock>(self) -> Self::Output {
        Box::new(Avx512::<F> { simd: self.0, amx: self.1, of: PhantomData })
    }
}

struct Avx512<F> {
    simd: V4Vnni,
    amx: Option<Amx>,
    of: PhantomData<fn() -> F>,
}

impl<F: IntegerBlock> Kernels for Avx512<F> {
    fn len(&self) -> usize {
        F::LEN
    }

    fn group(&self) -> usize {
        F::GROUP
    }

    fn epilogue(&self, rows: usize) -> Epilogue {
        match rows {
            ..=FEW => avx2::rows::epilogue::<F>(),
            _ if tiles::raised::<F>(self.amx) => Epilogue::Raised,
            _ if F::LEN == 256 => Epilogue::Largest,
            _ => Epilogue::None,
        }
    }

    // Compiled for AVX2: with vectors of 64 bytes the compiler uses masked loads and assembles levels on the
    // stack, which takes up to twice as long.
    fn rows(&self, weights: &[u8], x: &Quantized, out: &mut [f32]) {
        let simd = self.simd.halves();
        simd.vectorize(Rows::<F> { simd, weights, x, out, of: PhantomData });
    }

    fn pack(&self, weights: &[u8], row_bytes: usize) -> Option<Packed> {
        pack::<F>(self.simd.halves(), weights, row_bytes)
    }

    fn several(&self) -> usize {
        48
    }

    fn packed(&self, format: &PackedFormat, strips: &[u8], x: &Quantized, out: &mut [f32]) {
        Strips { simd: self.simd, format, strips, x, out }.multiply();
    }

    fn together(&self) -> usize {
        tiles::TOGETHER
    }

    fn tiles(&self, weights: &[u8], x: &Quantized, out: &mut [[f32; ROWS]]) {
        let Self { simd, amx, of } = *self;
        simd.vectorize(Tiles::<F> { simd, amx, weights, x, out, of });
    }
}

struct Tiles<'r, F> {
    simd: V4Vnni,
    amx: Option<Amx>,
    weights: &'r [u8],
    x: &'r Quantized,
    out: &'r mut [[f32; ROWS]],
    of: PhantomData<fn() -> F>,
}

impl<F: IntegerBlock> NullaryFnOnce for Tiles<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, amx, weights, x, out, .. } = self;
        tiles::tiles::<Unsigned<F, 128>>(simd, amx, weights, x, out);
    }
}
