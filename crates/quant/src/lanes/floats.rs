//! Conversion of bytes to floats with explicit instructions, since auto-vectorization depends on
//! the surrounding code.

#[cfg(target_arch = "x86_64")]
use std::any::Any;

use pulp::Simd;
#[cfg(target_arch = "x86_64")]
use pulp::cast;
#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

use super::{Lanes, transform};

/// Converts signed bytes to floats.
#[inline(always)]
pub(crate) fn floats<S: Simd, const N: usize>(simd: S, bytes: &[u8; N]) -> [f32; N] {
    let mut floats = [0.0; N];
    #[cfg(target_arch = "x86_64")]
    {
        const { assert!(N.is_multiple_of(8)) }
        // The compiler resolves this downcast.
        let instructions: &dyn Any = &simd;
        let instructions = match instructions.downcast_ref::<V4>() {
            Some(simd) => Some(**simd),
            None => instructions.downcast_ref::<V3>().copied(),
        };
        if let Some(simd) = instructions {
            for (floats, bytes) in floats.as_chunks_mut().0.iter_mut().zip(bytes.as_chunks().0) {
                let bytes = cast([u64::from_le_bytes(*bytes), 0]);
                let integers = simd.avx2._mm256_cvtepi8_epi32(bytes);
                *floats = cast::<_, [f32; 8]>(simd.avx._mm256_cvtepi32_ps(integers));
            }
            return floats;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = simd;
    for (x, &byte) in floats.iter_mut().zip(bytes) {
        *x = f32::from(byte as i8);
    }
    floats
}

/// Subtracts `zero` from levels below 128 and multiplies by `scale`; a whole number of vectors.
#[inline(always)]
pub(crate) fn scale_levels<S: Simd, const N: usize>(
    simd: S,
    levels: &[u8; N],
    zero: f32,
    scale: f32,
    out: &mut [f32; N],
) {
    let (zero, scale) = (Lanes::splat(simd, zero), Lanes::splat(simd, scale));
    transform(
        simd,
        &floats(simd, levels),
        out,
        #[inline(always)]
        |level| (level - zero) * scale,
    );
}
