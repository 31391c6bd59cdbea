//! The alignment of tensor data.

use std::num::NonZeroU32;

use crate::finding::Finding;
use crate::metadata::Metadata;
use crate::value::Value;

/// The key that sets it.
pub(crate) const KEY: &str = "general.alignment";

/// What every tensor offset is a multiple of: a power of two from 1 to 1 MiB, 32 if a file does
/// not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment(NonZeroU32);

impl Default for Alignment {
    fn default() -> Self {
        const { Self(NonZeroU32::new(32).unwrap()) }
    }
}

impl Alignment {
    /// The largest alignment accepted. Beyond every page size in use, a larger one only wastes
    /// the disk.
    pub const MAX: u32 = 1 << 20;

    /// `None` unless `bytes` is a power of two up to [`Alignment::MAX`].
    pub fn new(bytes: u32) -> Option<Self> {
        let bytes = NonZeroU32::new(bytes)?;
        (bytes.is_power_of_two() && bytes.get() <= Self::MAX).then_some(Self(bytes))
    }

    /// The one that a header asks for.
    ///
    /// # Errors
    /// If the key is of another type than UINT32 or its value is not valid.
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

    /// The alignment in bytes.
    pub const fn get(self) -> u64 {
        self.0.get() as u64
    }

    /// The first multiple at or after `pos`; `None` if it does not fit 64 bits.
    ///
    /// The one such function in the workspace.
    pub fn align_up(self, pos: u64) -> Option<u64> {
        pos.checked_next_multiple_of(self.get())
    }
}
