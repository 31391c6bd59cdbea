//! Budget of the memory that a model may allocate when it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gguf::Error;
use gguf::units::distinct_sizes;
use gguf_store::Model;

use crate::system_memory;

/// Memory that a model may allocate when it runs: KV caches and states, values and logits of batches, dequantized and
/// repacked weights, and weights that are not memory-mapped.
///
/// Every allocation whose size depends on the file is reserved here before it is made.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: u64,
    used: AtomicU64,
}

/// Part of the machine's memory that a budget has by default.
const DEFAULT_SHARE: u64 = 10;

/// Default budget if the system does not tell its memory.
const DEFAULT_LIMIT: u64 = 2 << 30;

impl MemoryBudget {
    /// Returns a budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    /// Returns the budget of a model: that of all its weights.
    pub fn for_model(model: &Model) -> Self {
        let weights = model.tensors().iter().filter_map(|tensor| tensor.info.byte_len());
        Self::for_weights(weights.fold(0, u64::saturating_add))
    }

    /// Returns the default budget of a model whose weights take `weights` bytes in the file: a tenth of the machine's
    /// memory, and the size of the weights, which may be copied once. Of a machine whose memory is unknown, 2 GiB count
    /// as a tenth.
    pub fn for_weights(weights: u64) -> Self {
        let share = system_memory::total().map_or(DEFAULT_LIMIT, |total| total / DEFAULT_SHARE);
        Self::new(share.saturating_add(weights))
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the reserved bytes.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Reserves memory for good; false if the budget does not have it.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Reserves memory until the reservation is dropped. `what` names its contents in the plural, `cure` tells how to
    /// need less.
    ///
    /// # Errors
    /// `memory-budget` if the budget does not have the memory.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        what: impl FnOnce() -> String,
        cure: &str,
    ) -> Result<Reservation, Error> {
        let mut reservation = Reservation { budget: self.clone(), bytes: 0 };
        reservation.grow_to(bytes, what, cure)?;
        Ok(reservation)
    }
}

/// Reserved memory of a budget.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl Reservation {
    /// Grows the reservation to `bytes`; a larger one stays as it is.
    ///
    /// # Errors
    /// As [`MemoryBudget::reserve`].
    pub fn grow_to(
        &mut self,
        bytes: u64,
        what: impl FnOnce() -> String,
        cure: &str,
    ) -> Result<(), Error> {
        if self.budget.take(bytes.saturating_sub(self.bytes)) {
            self.bytes = self.bytes.max(bytes);
            return Ok(());
        }
        let others = self.budget.used().saturating_sub(self.bytes);
        let [needed, allowed] = distinct_sizes(bytes, self.budget.limit.saturating_sub(others));
        let message = format!("{} need {needed}; {allowed} are allowed", what());
        let help = format!("{cure}, or allow more memory with `--memory-limit SIZE`");
        Err(Error::request("memory-budget", message, help))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Returns zeros, whose memory the system provides when they are first touched.
///
/// # Errors
/// [`Error::Environment`] if the system does not have the memory.
pub(crate) fn zeros(len: usize) -> Result<Vec<f32>, Error> {
    // Zeroed memory cannot be allocated fallibly: the same size is allocated fallibly before.
    Vec::<f32>::new().try_reserve_exact(len).map_err(|_| out_of_memory(4 * len as u64))?;
    Ok(vec![0.0; len])
}

/// Returns the error for memory that the system does not have.
pub(crate) fn out_of_memory(bytes: u64) -> Error {
    let size = gguf::units::bytes(bytes);
    Error::environment("allocate", size.as_ref(), std::io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_share_the_limit() {
        let budget = Arc::new(MemoryBudget::new(100));
        let mut first = budget.reserve(60, || "caches".into(), "make them smaller").unwrap();
        assert!(budget.take(20));
        let error = budget.reserve(21, || "values".into(), "make them smaller").unwrap_err();
        assert_eq!(
            error.to_string(),
            "values need 21 B; 20 B are allowed; make them smaller, or allow more memory with \
             `--memory-limit SIZE`"
        );
        assert_eq!(budget.used(), 80);
        assert!(first.grow_to(81, String::new, "").is_err());
        first.grow_to(80, String::new, "").unwrap();
        first.grow_to(10, String::new, "").unwrap();
        assert_eq!(budget.used(), 100);
        drop(first);
        assert_eq!(budget.used(), 20);
        assert!(!budget.take(u64::MAX));
    }

    #[test]
    fn the_default_is_a_tenth_of_the_machine_and_the_weights() {
        let tenth = MemoryBudget::for_weights(0).limit();
        assert!(tenth <= system_memory::total().map_or(DEFAULT_LIMIT, |total| total / 10));
        assert_eq!(MemoryBudget::for_weights(7).limit(), tenth + 7);
    }

    #[test]
    fn memory_that_no_machine_has_is_an_error() {
        let error = zeros(1 << 60).unwrap_err().to_string();
        assert!(error.contains("allocate"), "{error}");
        assert_eq!(zeros(3).unwrap(), [0.0; 3]);
    }
}
