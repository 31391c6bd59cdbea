//! Weights as floats, piece by piece.

use gguf::TensorType;
use gguf_quant::integers::half;

use crate::weight::Matrix;

/// Decodes the weights of a row from column `first` on, as many as `out` holds: whole blocks.
/// Plain floats are decoded right here, where the caller's instruction set is used.
#[inline(always)]
pub(super) fn decode(matrix: &Matrix, row: usize, first: usize, out: &mut [f32]) {
    visit(matrix.codec.tensor_type(), Decode { matrix, row, first, out });
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
        let of_row = matrix.row_bytes / (matrix.row_len / matrix.block_len);
        let start = first / matrix.block_len * of_row;
        let len = out.len() / matrix.block_len * of_row;
        let bytes = matrix.rows(row, 1).get(start..start + len).unwrap_or_default();
        let decoded = matrix.codec.decode_row(bytes, out);
        debug_assert!(decoded.is_ok(), "{}", matrix.name);
    }
}

/// Does something with the weights of a type.
pub(super) trait Visitor {
    /// Of a type of plain floats.
    fn floats<F: Floats<N>, const N: usize>(self, floats: F);

    /// Of any other type.
    fn blocks(self);
}

/// Finds how a type is decoded.
#[inline(always)]
pub(super) fn visit(ty: TensorType, visitor: impl Visitor) {
    match ty {
        TensorType::F32 => visitor.floats(Single),
        TensorType::BF16 => visitor.floats(Brain),
        TensorType::F16 => {
            #[cfg(target_arch = "x86_64")]
            if let Some(simd) = pulp::x86::V3::try_new() {
                return visitor.floats(HalfV3(simd));
            }
            visitor.floats(Half);
        }
        _ => visitor.blocks(),
    }
}

/// Floats of `N` bytes.
pub(super) trait Floats<const N: usize>: Copy {
    fn one(self, bytes: [u8; N]) -> f32;

    /// Made as a whole, not put in place one by one: so it becomes instructions of vectors.
    #[inline(always)]
    fn sixteen(self, bytes: &[[u8; N]; 16]) -> [f32; 16] {
        let bytes = *bytes;
        let mut made = [0.0; 16];
        for i in 0..16 {
            made[i] = self.one(bytes[i]);
        }
        made
    }
}

#[derive(Clone, Copy)]
struct Single;

impl Floats<4> for Single {
    #[inline(always)]
    fn one(self, bytes: [u8; 4]) -> f32 {
        f32::from_le_bytes(bytes)
    }
}

#[derive(Clone, Copy)]
struct Brain;

impl Floats<2> for Brain {
    #[inline(always)]
    fn one(self, bytes: [u8; 2]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
    }
}

#[derive(Clone, Copy)]
struct Half;

impl Floats<2> for Half {
    #[inline(always)]
    fn one(self, bytes: [u8; 2]) -> f32 {
        half(u16::from_le_bytes(bytes))
    }
}

/// Halves with AVX2. F16C would do it in one instruction, but has no safe interface.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct HalfV3(pulp::x86::V3);

#[cfg(target_arch = "x86_64")]
impl Floats<2> for HalfV3 {
    #[inline(always)]
    fn one(self, bytes: [u8; 2]) -> f32 {
        Half.one(bytes)
    }

    #[inline(always)]
    fn sixteen(self, bytes: &[[u8; 2]; 16]) -> [f32; 16] {
        let (avx, avx2) = (self.0.avx, self.0.avx2);
        // Exponents of all zeros or ones, which are rare: one more brings both to zeros, but for the
        // lowest bit.
        let more = avx2._mm256_add_epi16(pulp::cast(*bytes), avx._mm256_set1_epi16(0x400));
        let exponents = avx2._mm256_and_si256(more, avx._mm256_set1_epi16(0x7800));
        let rare = avx2._mm256_cmpeq_epi16(exponents, avx._mm256_setzero_si256());
        if avx2._mm256_movemask_epi8(rare) != 0 {
            return Half.sixteen(bytes);
        }
        let halves: [std::arch::x86_64::__m128i; 2] = pulp::cast(*bytes);
        let mut made = [avx._mm256_setzero_si256(); 2];
        for i in 0..2 {
            let moved = avx2._mm256_slli_epi32::<13>(avx2._mm256_cvtepi16_epi32(halves[i]));
            let fields =
                avx2._mm256_and_si256(moved, avx._mm256_set1_epi32(0x8fff_e000_u32 as i32));
            made[i] = avx2._mm256_add_epi32(fields, avx._mm256_set1_epi32(112 << 23));
        }
        pulp::cast(made)
    }
}

/// Columns of a piece: whole blocks of every type.
pub(super) fn piece(matrix: &Matrix, about: usize) -> usize {
    (about / matrix.block_len).max(1) * matrix.block_len
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn halves_are_the_same_with_vectors() {
        let Some(simd) = pulp::x86::V3::try_new() else { return };
        let all: Vec<[u8; 2]> = (0..=u16::MAX).map(u16::to_le_bytes).collect();
        for bytes in all.as_chunks().0 {
            let found = HalfV3(simd).sixteen(bytes).map(f32::to_bits);
            assert_eq!(found, bytes.map(|bytes| Half.one(bytes).to_bits()), "{bytes:?}");
        }
        // One of them alone takes the others along.
        for odd in [0, 0x8000, 1, 0x83ff, 0x7c00, 0xfc00, 0x7e00, 0xffff] {
            let bytes = [0x3c00, 0x0400, 0x7bff, 0xbc00, odd, 0x3555, 0x8400, 0xfbff];
            let bytes: [_; 16] = std::array::from_fn(|i| u16::to_le_bytes(bytes[i % 8]));
            let found = HalfV3(simd).sixteen(&bytes).map(f32::to_bits);
            assert_eq!(found, bytes.map(|bytes| Half.one(bytes).to_bits()), "{odd:x}");
        }
    }
}
