//! Prefetching.
#![allow(unsafe_code)]

/// Prefetches the cache line at an address into the first-level cache. Does nothing on targets without such an
/// instruction in stable Rust.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE, and a prefetch accesses no memory that the program observes.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
