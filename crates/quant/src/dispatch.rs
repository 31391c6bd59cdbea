//! The same code for several instruction sets, chosen at run time.

use std::fmt;

use pulp::Arch;

/// Vector instructions that this processor has.
///
/// They decide the speed of encoders and decoders, never their results: no operation is reordered
/// or contracted. So a program has no reason to choose other than the [widest](Self::widest); tests
/// and benchmarks have.
#[derive(Clone, Copy, Debug)]
pub struct InstructionSet(Arch);

impl InstructionSet {
    /// The widest vectors of this processor: AVX-512, AVX2 or NEON.
    pub fn widest() -> Self {
        Self(Arch::new())
    }

    /// All of this processor, from plain scalar code up.
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

    /// The token that lets code use them.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn arch(self) -> Arch {
        self.0
    }

    /// Runs `work` compiled for these instructions, as far as it is inlined.
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
