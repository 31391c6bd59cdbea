//! The same code for several instruction sets, chosen at run time.

/// Runs `work` compiled for the widest vectors that this processor has: AVX-512, AVX2 or NEON.
///
/// What is to profit must be inlined into `work`; the results are the same, since no operation is
/// reordered or contracted.
#[inline]
pub(crate) fn widest<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}
