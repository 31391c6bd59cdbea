//! Instruction sets of matrix multiplication in 8 bits and in BF16.

use gguf::Error;

#[cfg(target_arch = "aarch64")]
use crate::neon::{NeonDot, NeonMatrix};
#[cfg(target_arch = "x86_64")]
use crate::{
    amx::{Amx, bf16::AmxBf16},
    avx512::{V4Vnni, bf16::V4Bf16},
    simd::V3F16c,
};

/// Instruction sets, for tests and benchmarks. Products in 8 bits are bit-exact across all sets; products in BF16 differ
/// between AVX-512 and AMX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// No explicit SIMD.
    Scalar,
    /// AVX2 with F16C: x86-64 since 2013.
    Avx2,
    /// AVX-512 with VNNI, and with BF16 if the processor has it.
    Avx512,
    /// AMX with INT8, with BF16 if the processor has it, and AVX-512 for the rest.
    Amx,
    /// NEON with INT8 dot products (`dotprod`).
    Neon,
    /// NEON with INT8 dot and matrix products (`i8mm`).
    NeonMatrix,
}

impl InstructionSet {
    /// All sets, in ascending order of preference.
    pub const ALL: [Self; 6] =
        [Self::Scalar, Self::Avx2, Self::Avx512, Self::Amx, Self::Neon, Self::NeonMatrix];

    /// Returns the best set that processor and operating system support.
    pub fn best() -> Self {
        let found = Self::ALL.into_iter().rev().find(|set| set.is_supported());
        found.unwrap_or(Self::Scalar)
    }

    /// Whether processor and operating system support the set.
    pub fn is_supported(self) -> bool {
        self.proof().is_some()
    }

    /// Returns the name of the set.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Amx => "amx",
            Self::Neon => "neon",
            Self::NeonMatrix => "neon-i8mm",
        }
    }

    /// Returns a proof that the set is supported.
    pub(crate) fn require(self) -> Result<SimdToken, Error> {
        self.proof().ok_or_else(|| {
            let supported = Self::ALL.into_iter().filter(|set| set.is_supported());
            let supported: Vec<_> = supported.map(Self::name).collect();
            let what =
                format!("this processor or operating system does not support {}", self.name());
            let help = format!("it supports {}", supported.join(", "));
            Error::request("instructions-missing", what, help)
        })
    }

    fn proof(self) -> Option<SimdToken> {
        match self {
            Self::Scalar => Some(SimdToken::Scalar),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Some(SimdToken::Avx2(V3F16c::try_new()?)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                let bf16 = V4Bf16::try_new().map(Bf16Token::Avx512);
                Some(SimdToken::Avx512(V4Vnni::try_new()?, None, bf16))
            }
            #[cfg(target_arch = "x86_64")]
            Self::Amx => {
                let bf16 = AmxBf16::try_new().map(Bf16Token::Amx);
                let bf16 = bf16.or_else(|| V4Bf16::try_new().map(Bf16Token::Avx512));
                Some(SimdToken::Avx512(V4Vnni::try_new()?, Some(Amx::try_new()?), bf16))
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Some(SimdToken::Neon(NeonDot::try_new()?, None)),
            #[cfg(target_arch = "aarch64")]
            Self::NeonMatrix => {
                Some(SimdToken::Neon(NeonDot::try_new()?, Some(NeonMatrix::try_new()?)))
            }
            _ => None,
        }
    }
}

/// Proof that the processor supports an instruction set.
#[derive(Clone, Copy)]
pub(crate) enum SimdToken {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(V3F16c),
    #[cfg(target_arch = "x86_64")]
    Avx512(V4Vnni, Option<Amx>, Option<Bf16Token>),
    #[cfg(target_arch = "aarch64")]
    Neon(NeonDot, Option<NeonMatrix>),
}

/// Proof that the processor multiplies BF16.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) enum Bf16Token {
    Avx512(V4Bf16),
    Amx(AmxBf16),
}
