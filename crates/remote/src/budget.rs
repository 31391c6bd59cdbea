//! Limits on the total size of responses with unknown length.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Fault;

/// Minimum cost of a response, so that endless small responses exhaust the limit too.
const MIN_COST: u64 = 64 << 10;

/// Remaining number of response bytes, shared by many requests.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    left: AtomicU64,
    message: &'static str,
}

impl ByteBudget {
    /// Creates a budget of `bytes`; `message` is the error when it is exhausted.
    pub fn new(bytes: u64, message: &'static str) -> Self {
        Self { left: bytes.into(), message }
    }

    /// Subtracts the cost of a response of `bytes` bytes.
    ///
    /// # Errors
    /// [`Fault::Response`] if the budget is exhausted.
    pub fn spend(&self, bytes: u64) -> Result<(), Fault> {
        let cost = bytes.max(MIN_COST);
        let spent = |left: u64| left.checked_sub(cost);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent) {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::Response(self.message.into())),
        }
    }
}
