//! Alignment of tensor data.

use std::num::NonZeroU32;

use crate::finding::Finding;
use crate::metadata::Metadata;
use crate::value::Value;

/// Key that sets the alignment.
pub(crate) const KEY: &str = "general.alignment";

/// Alignment of tensor offsets: a power of two from 1 byte to 1 MiB. The default is 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment(NonZeroU32);

impl Default for Alignment {
    fn default() -> Self {
        const { Self(NonZeroU32::new(32).unwrap()) }
    }
}

impl Alignment {
    /// Largest accepted alignment. It exceeds every page size; a larger value would only waste disk
    /// space.
    pub const MAX: u32 = 1 << 20;

    /// Returns the alignment; `None` unless `bytes` is a power of two up to [`Alignment::MAX`].
    pub fn new(bytes: u32) -> Option<Self> {
        let bytes = NonZeroU32::new(bytes)?;
        (bytes.is_power_of_two() && bytes.get() <= Self::MAX).then_some(Self(bytes))
    }

    /// Returns the alignment in the metadata, or the default.
    ///
    /// # Errors
    /// If the type of the key is not UINT32 or its value is not valid.
    pub(crate) fn of(metadata: &Metadata) -> Result<Self, Finding> {
        let fault = |message: String| {
            Finding::error("alignment-invalid", message)
                .key(KEY)
                .help("expected a UINT32 with a power of two; 32 is the default")
        };
        match metadata.get(KEY) {
            None => Ok(Self::default()),
            Some(&Value::U32(bytes)) => Self::new(bytes).ok_or_else(|| {
                fault(format!("{bytes} is not a power of two from 1 to {}", Self::MAX))
            }),
            Some(other) => Err(fault(format!("is {} instead of UINT32", other.value_type()))),
        }
    }

    /// Returns the alignment in bytes.
    pub const fn get(self) -> u64 {
        self.0.get() as u64
    }

    /// Returns the first multiple at or after `pos`; `None` on overflow.
    pub fn align_up(self, pos: u64) -> Option<u64> {
        pos.checked_next_multiple_of(self.get())
    }
}
