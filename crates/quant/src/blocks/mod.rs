//! One file per tensor type, and the registry of their codecs.
//!
//! Drawings show bytes from left to right, `d[2]` being two bytes named d; floats and integers
//! are little-endian. `x[i]` is weight i of the block, `q` its integer level.

use gguf::TensorType;

use crate::block::{Block, Importance, Row};
use crate::codec::Codec;
use crate::fp16;
use crate::layout::BlockLayout;

mod bf16;
mod e2m1;
mod error_weights;
mod f16;
mod f32;
mod f64;
mod integers;
mod iq1;
mod iq1_m;
mod iq1_s;
mod iq2_iq3;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4;
mod iq4_nl;
mod iq4_xs;
mod k_affine;
mod legacy_quants;
mod mxfp4;
mod nvfp4;
mod q1_0;
mod q2_0;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod q8_1;
mod q8_k;
mod scalar;
mod tq1_0;
mod tq2_0;
mod unconstrained_scale;

/// All codecs.
pub(crate) static CODECS: &[Codec] = &[
    f32::CODEC,
    f16::CODEC,
    bf16::CODEC,
    Codec::blocks::<q4_0::Q4_0, _, _>(),
    Codec::blocks::<q4_1::Q4_1, _, _>(),
    Codec::blocks::<q5_0::Q5_0, _, _>(),
    Codec::blocks::<q5_1::Q5_1, _, _>(),
    Codec::blocks::<q8_0::Q8_0, _, _>(),
    Codec::blocks::<q2_k::Q2K, _, _>(),
    Codec::blocks::<q3_k::Q3K, _, _>(),
    Codec::blocks::<q4_k::Q4K, _, _>(),
    Codec::blocks::<q5_k::Q5K, _, _>(),
    Codec::blocks::<q6_k::Q6K, _, _>(),
    Codec::blocks::<iq1_s::IQ1S, _, _>(),
    Codec::blocks::<iq1_m::IQ1M, _, _>(),
    Codec::blocks::<iq2_xxs::IQ2XXS, _, _>(),
    Codec::blocks::<iq2_xs::IQ2XS, _, _>(),
    Codec::blocks::<iq2_s::IQ2S, _, _>(),
    Codec::blocks::<iq3_xxs::IQ3XXS, _, _>(),
    Codec::blocks::<iq3_s::IQ3S, _, _>(),
    Codec::blocks::<iq4_nl::IQ4NL, _, _>(),
    Codec::blocks::<iq4_xs::IQ4XS, _, _>(),
    Codec::blocks::<tq1_0::TQ1_0, _, _>(),
    Codec::blocks::<tq2_0::TQ2_0, _, _>(),
    Codec::blocks::<mxfp4::MXFP4, _, _>(),
    Codec::blocks::<nvfp4::NVFP4, _, _>(),
    Codec::blocks::<q1_0::Q1_0, _, _>(),
    Codec::blocks::<q2_0::Q2_0, _, _>(),
    Codec::blocks::<q8_1::Q8_1, _, _>(),
    Codec::blocks::<q8_k::Q8K, _, _>(),
    f64::CODEC,
    integers::I8,
    integers::I16,
    integers::I32,
    integers::I64,
];

/// Bit layouts of all types that have a codec.
pub(crate) static LAYOUTS: &[(TensorType, &BlockLayout)] = &[
    (TensorType::F32, &scalar::F32),
    (TensorType::F16, &scalar::F16),
    (TensorType::BF16, &scalar::BF16),
    (TensorType::Q4_0, &q4_0::LAYOUT),
    (TensorType::Q4_1, &q4_1::LAYOUT),
    (TensorType::Q5_0, &q5_0::LAYOUT),
    (TensorType::Q5_1, &q5_1::LAYOUT),
    (TensorType::Q8_0, &q8_0::LAYOUT),
    (TensorType::Q2_K, &q2_k::LAYOUT),
    (TensorType::Q3_K, &q3_k::LAYOUT),
    (TensorType::Q4_K, &q4_k::LAYOUT),
    (TensorType::Q5_K, &q5_k::LAYOUT),
    (TensorType::Q6_K, &q6_k::LAYOUT),
    (TensorType::IQ1_S, &iq1_s::LAYOUT),
    (TensorType::IQ1_M, &iq1_m::LAYOUT),
    (TensorType::IQ2_XXS, &iq2_xxs::LAYOUT),
    (TensorType::IQ2_XS, &iq2_xs::LAYOUT),
    (TensorType::IQ2_S, &iq2_s::LAYOUT),
    (TensorType::IQ3_XXS, &iq3_xxs::LAYOUT),
    (TensorType::IQ3_S, &iq3_s::LAYOUT),
    (TensorType::IQ4_NL, &iq4_nl::LAYOUT),
    (TensorType::IQ4_XS, &iq4_xs::LAYOUT),
    (TensorType::TQ1_0, &tq1_0::LAYOUT),
    (TensorType::TQ2_0, &tq2_0::LAYOUT),
    (TensorType::MXFP4, &mxfp4::LAYOUT),
    (TensorType::NVFP4, &nvfp4::LAYOUT),
    (TensorType::Q1_0, &q1_0::LAYOUT),
    (TensorType::Q2_0, &q2_0::LAYOUT),
    (TensorType::Q8_1, &q8_1::LAYOUT),
    (TensorType::Q8_K, &q8_k::LAYOUT),
    (TensorType::F64, &scalar::F64),
    (TensorType::I8, &scalar::I8),
    (TensorType::I16, &scalar::I16),
    (TensorType::I32, &scalar::I32),
    (TensorType::I64, &scalar::I64),
];

/// Returns the `N` bytes at offset `AT`. A field that exceeds its block does not compile.
#[inline(always)]
fn part<const AT: usize, const N: usize, const BYTES: usize>(block: &[u8; BYTES]) -> &[u8; N] {
    const { assert!(AT + N <= BYTES) }
    block[AT..].first_chunk().expect("the field fits, as the compile-time check showed")
}

/// Writes `N` bytes at offset `AT`.
#[inline(always)]
fn put<const AT: usize, const N: usize, const BYTES: usize>(
    block: &mut [u8; BYTES],
    part: [u8; N],
) {
    const { assert!(AT + N <= BYTES) }
    block[AT..AT + N].copy_from_slice(&part);
}

/// Reads an FP16 number at offset `AT`. The `half` crate would detect processor features on each
/// call and call the function that uses them.
#[inline(always)]
fn f16_at<const AT: usize, const BYTES: usize>(block: &[u8; BYTES]) -> f32 {
    fp16::to_f32(u16::from_le_bytes(*part::<AT, 2, _>(block)))
}

/// Returns the first of the scales that is NaN or infinite.
fn first_bad<const N: usize>(scales: [(&'static str, f32); N]) -> Option<(&'static str, f32)> {
    scales.into_iter().find(|(_, d)| !d.is_finite())
}
