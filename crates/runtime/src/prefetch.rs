//! Asking for memory before it is read.
#![allow(unsafe_code)]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Brings the line at an address into the first-level cache, if anything is there.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    // SAFETY: every x86-64 has SSE, and a hint reads nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}
