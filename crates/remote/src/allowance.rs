//! How much a server may make us read that nobody knew the size of.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Fault;

/// What an answer costs however short it is: servers that send endless small ones come to an end
/// too.
const LEAST: u64 = 64 << 10;

/// Bytes that may still come, in all answers together.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: AtomicU64,
    what: &'static str,
}

impl Allowance {
    /// So many bytes; `what` is said when they are used up.
    pub fn new(bytes: u64, what: &'static str) -> Self {
        Self { left: bytes.into(), what }
    }

    /// Takes an answer of so many bytes off.
    ///
    /// # Errors
    /// [`Fault::Answer`] if it was one too many.
    pub fn spend(&self, bytes: u64) -> Result<(), Fault> {
        let cost = bytes.max(LEAST);
        let spent = |left: u64| left.checked_sub(cost);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent) {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::Answer(self.what.into())),
        }
    }
}
