//! Memory for weights in another order.
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "other kernels pack nothing yet")
)]

use std::sync::atomic::{AtomicU64, Ordering};

/// How much memory weights may take once more, in the order in which generating reads them, and how much
/// they take.
#[derive(Debug)]
pub(crate) struct Repacking {
    left: AtomicU64,
    taken: AtomicU64,
}

impl Repacking {
    /// With a limit in bytes.
    pub fn of(limit: u64) -> Self {
        Self { left: AtomicU64::new(limit), taken: AtomicU64::new(0) }
    }

    /// Asks for memory for so many bytes of weights; false if it is not left.
    pub fn take(&self, bytes: usize) -> bool {
        let less = |left: u64| left.checked_sub(bytes as u64);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// So many bytes are taken.
    pub fn add(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Half of the memory that is free, in bytes, or may be freed at once; no limit where the system does not say.
impl Default for Repacking {
    fn default() -> Self {
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let kilobytes = available.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        Self::of(kilobytes.map_or(u64::MAX, |kilobytes: u64| kilobytes.saturating_mul(512)))
    }
}
