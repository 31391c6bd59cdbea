//! Which instructions of a processor products in 8 bits, and those in BF16, are computed by.

use gguf::Error;

#[cfg(target_arch = "aarch64")]
use crate::neon::{NeonDot, NeonMatrix};
#[cfg(target_arch = "x86_64")]
use crate::{
    amx::{Amx, brain::AmxBrain},
    avx512::{V4Products, brain::V4Brain},
    simd::V3Halves,
};

/// Sets of instructions, for tests and measurements. Of products in 8 bits every one gives the same bits; of
/// those in BF16 AVX-512 and AMX give others each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// No vectors but those that a compiler finds.
    Scalar,
    /// AVX2 with F16C: x86-64 since 2013.
    Avx2,
    /// AVX-512 with VNNI, and with BF16 if the processor has it.
    Avx512,
    /// AMX with bytes, with BF16 if the processor has it, and AVX-512 for what it does not do.
    Amx,
    /// NEON with products of bytes (`dotprod`).
    Neon,
    /// NEON with products of matrices of bytes as well (`i8mm`).
    NeonMatrix,
}

impl Instructions {
    /// All sets, from the plainest on.
    pub const ALL: [Self; 6] =
        [Self::Scalar, Self::Avx2, Self::Avx512, Self::Amx, Self::Neon, Self::NeonMatrix];

    /// The best set that this processor and its system have.
    pub fn best() -> Self {
        let found = Self::ALL.into_iter().rev().find(|set| set.is_there());
        found.unwrap_or(Self::Scalar)
    }

    /// Whether this processor and its system have a set.
    pub fn is_there(self) -> bool {
        self.proof().is_some()
    }

    /// The name of a set.
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

    /// The proof that a set is there.
    pub(crate) fn require(self) -> Result<Proof, Error> {
        self.proof().ok_or_else(|| {
            let there = Self::ALL.into_iter().filter(|set| set.is_there());
            let there: Vec<_> = there.map(Self::name).collect();
            let what = format!("this processor or its system has no {}", self.name());
            let help = format!("it has {}", there.join(", "));
            Error::request("instructions-missing", what, help)
        })
    }

    fn proof(self) -> Option<Proof> {
        match self {
            Self::Scalar => Some(Proof::Scalar),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Some(Proof::Avx2(V3Halves::try_new()?)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                let brain = V4Brain::try_new().map(Brain::Vectors);
                Some(Proof::Avx512(V4Products::try_new()?, None, brain))
            }
            #[cfg(target_arch = "x86_64")]
            Self::Amx => {
                let brain = AmxBrain::try_new().map(Brain::Tiles);
                let brain = brain.or_else(|| V4Brain::try_new().map(Brain::Vectors));
                Some(Proof::Avx512(V4Products::try_new()?, Some(Amx::try_new()?), brain))
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Some(Proof::Neon(NeonDot::try_new()?, None)),
            #[cfg(target_arch = "aarch64")]
            Self::NeonMatrix => {
                Some(Proof::Neon(NeonDot::try_new()?, Some(NeonMatrix::try_new()?)))
            }
            _ => None,
        }
    }
}

/// Instructions that are there.
#[derive(Clone, Copy)]
pub(crate) enum Proof {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(V3Halves),
    #[cfg(target_arch = "x86_64")]
    Avx512(V4Products, Option<Amx>, Option<Brain>),
    #[cfg(target_arch = "aarch64")]
    Neon(NeonDot, Option<NeonMatrix>),
}

/// What multiplies numbers in BF16.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) enum Brain {
    Vectors(V4Brain),
    Tiles(AmxBrain),
}
