//! Dequantization of parts of rows.

#[cfg(target_arch = "x86_64")]
use std::any::TypeId;

use gguf::TensorType;
use gguf_quant::integers::f16_to_f32;
#[cfg(not(target_arch = "x86_64"))]
use pulp::Arch;
#[cfg(target_arch = "x86_64")]
use pulp::Scalar;
#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};
use pulp::{Simd, WithSimd};

use crate::matrix::Matrix;
#[cfg(target_arch = "x86_64")]
use crate::simd::V3F16c;

/// Dequantizes the weights of a row from column `first` on, as many as `out` holds: whole blocks. The conversion
/// of unquantized floats is inlined into the caller, which is compiled for the instruction set `S`.
#[inline(always)]
pub(super) fn decode<S: Simd>(matrix: &Matrix, row: usize, first: usize, out: &mut [f32]) {
    visit::<S>(matrix.codec.tensor_type(), Decode { matrix, row, first, out });
}

/// [`decode`] for types that are no unquantized floats.
pub(super) fn decode_blocks(matrix: &Matrix, row: usize, first: usize, out: &mut [f32]) {
    let of_row = matrix.row_bytes / (matrix.row_len / matrix.block_len);
    let start = first / matrix.block_len * of_row;
    let len = out.len() / matrix.block_len * of_row;
    let bytes = matrix.rows(row, 1).get(start..start + len).unwrap_or_default();
    let decoded = matrix.codec.decode_row(bytes, out);
    debug_assert!(decoded.is_ok(), "{}", matrix.name);
}

struct Decode<'d> {
    matrix: &'d Matrix,
    row: usize,
    first: usize,
    out: &'d mut [f32],
}

impl Visitor for Decode<'_> {
    #[inline(always)]
    fn floats<F: Floats<N>, const N: usize>(self, floats: F) {
        let Self { matrix, row, first, out } = self;
        let bytes = matrix.rows(row, 1).get(N * first..).unwrap_or_default().as_chunks::<N>().0;
        let bytes = &bytes[..bytes.len().min(out.len())];
        let (whole, rest) = out.as_chunks_mut::<16>();
        let (bytes, rest_bytes) = bytes.as_chunks::<16>();
        for (out, bytes) in whole.iter_mut().zip(bytes) {
            *out = floats.sixteen(bytes);
        }
        for (out, bytes) in rest.iter_mut().zip(rest_bytes) {
            *out = floats.one(*bytes);
        }
    }

    #[inline(always)]
    fn blocks(self) {
        let Self { matrix, row, first, out } = self;
        decode_blocks(matrix, row, first, out);
    }
}

/// Visitor of the types of weights.
pub(super) trait Visitor {
    /// Visits a type of unquantized floats.
    fn floats<F: Floats<N>, const N: usize>(self, floats: F);

    /// Visits any other type.
    fn blocks(self);
}

/// Calls a visitor with the conversion of a type by the instruction set `S`.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(clippy::extra_unused_type_parameters, reason = "only x86-64 has several conversions")
)]
#[inline(always)]
pub(super) fn visit<S: Simd>(ty: TensorType, visitor: impl Visitor) {
    match ty {
        TensorType::F32 => visitor.floats(Fp32),
        TensorType::BF16 => visitor.floats(Bf16),
        TensorType::F16 => {
            #[cfg(target_arch = "x86_64")]
            if let (true, Some(simd)) = (is::<S, V4>(), V4::try_new()) {
                return visitor.floats(simd);
            }
            #[cfg(target_arch = "x86_64")]
            if let (true, Some(simd)) = (is::<S, V3>(), V3F16c::try_new()) {
                return visitor.floats(simd);
            }
            visitor.floats(Fp16);
        }
        _ => visitor.blocks(),
    }
}

/// Whether two instruction sets are the same, which the compiler knows.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is<S: Simd, Other: Simd>() -> bool {
    TypeId::of::<S>() == TypeId::of::<Other>()
}

/// Conversion of floats of `N` bytes.
pub(super) trait Floats<const N: usize>: Copy {
    fn one(self, bytes: [u8; N]) -> f32;

    /// Prefetches an address.
    #[inline(always)]
    fn prefetch(self, _: *const u8) {}

    /// Converts sixteen numbers. It returns an array instead of writing elements, so that the compiler
    /// vectorizes it.
    #[inline(always)]
    fn sixteen(self, bytes: &[[u8; N]; 16]) -> [f32; 16] {
        let bytes = *bytes;
        let mut result = [0.0; 16];
        for i in 0..16 {
            result[i] = self.one(bytes[i]);
        }
        result
    }
}

#[derive(Clone, Copy)]
struct Fp32;

impl Floats<4> for Fp32 {
    #[inline(always)]
    fn one(self, bytes: [u8; 4]) -> f32 {
        f32::from_le_bytes(bytes)
    }
}

#[derive(Clone, Copy)]
struct Bf16;

impl Floats<2> for Bf16 {
    #[inline(always)]
    fn one(self, bytes: [u8; 2]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
    }
}

#[derive(Clone, Copy)]
struct Fp16;

impl Floats<2> for Fp16 {
    #[inline(always)]
    fn one(self, bytes: [u8; 2]) -> f32 {
        f16_to_f32(u16::from_le_bytes(bytes))
    }
}

#[cfg(target_arch = "x86_64")]
impl Floats<2> for V3F16c {
    #[inline(always)]
    fn one(self, bytes: [u8; 2]) -> f32 {
        Fp16.one(bytes)
    }

    #[inline(always)]
    fn prefetch(self, at: *const u8) {
        self.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }

    #[inline(always)]
    fn sixteen(self, bytes: &[[u8; 2]; 16]) -> [f32; 16] {
        let halves: [std::arch::x86_64::__m128i; 2] = pulp::cast(*bytes);
        pulp::cast([self.floats(halves[0]), self.floats(halves[1])])
    }
}

#[cfg(target_arch = "x86_64")]
impl Floats<2> for V4 {
    #[inline(always)]
    fn one(self, bytes: [u8; 2]) -> f32 {
        Fp16.one(bytes)
    }

    #[inline(always)]
    fn prefetch(self, at: *const u8) {
        self.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }

    #[inline(always)]
    fn sixteen(self, bytes: &[[u8; 2]; 16]) -> [f32; 16] {
        pulp::cast(self.avx512f._mm512_cvtph_ps(pulp::cast(*bytes)))
    }
}

/// Calls a function with the best instruction set of the processor that converts FP16.
pub(super) fn dispatch<W: WithSimd>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = V4::try_new() {
            Simd::vectorize(simd, work)
        } else if let Some(simd) = V3F16c::try_new() {
            simd.dispatch(work)
        } else {
            Simd::vectorize(Scalar, work)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    Arch::new().dispatch(work)
}
