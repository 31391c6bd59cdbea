//! Run-time dispatch of the same code to several instruction sets.

use std::fmt;

use pulp::Arch;

/// A vector instruction set of this processor.
///
/// It affects the speed of encoders and decoders, never their results: no operation is reordered or
/// contracted. Programs use the [widest](Self::widest) set; tests and benchmarks select others.
#[derive(Clone, Copy, Debug)]
pub struct InstructionSet(Arch);

impl InstructionSet {
    /// Returns the widest instruction set of this processor: AVX-512, AVX2 or NEON.
    pub fn widest() -> Self {
        Self(Arch::new())
    }

    /// Returns all instruction sets of this processor, starting with scalar code.
    pub fn available() -> Vec<Self> {
        let mut sets = vec![Arch::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            sets.extend(pulp::x86::V3::try_new().map(Arch::V3));
            sets.extend(pulp::x86::V4::try_new().map(Arch::V4));
        }
        #[cfg(target_arch = "aarch64")]
        sets.extend(pulp::aarch64::Neon::try_new().map(Arch::Neon));
        sets.into_iter().map(Self).collect()
    }

    /// Token that proves that the processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn arch(self) -> Arch {
        self.0
    }

    /// Runs `work`, compiled for this instruction set wherever it is inlined.
    #[inline(always)]
    pub(crate) fn run<Work: pulp::WithSimd>(self, work: Work) -> Work::Output {
        self.0.dispatch(work)
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Arch::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Arch::V3(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Arch::V4(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(_) => "neon",
            _ => "other",
        })
    }
}
