//! Steps that a template may take.

use std::cell::Cell;

use super::error::{Error, ErrorKind, Result};

/// Bytes of text, or 16 times the elements of a list, that cost one step when they are written.
const BYTES_PER_STEP: usize = 256;

/// Remaining steps. A statement, an operation and an iteration cost one step; a new text or list
/// costs more the longer it is, and is paid before it is allocated.
#[derive(Debug)]
pub struct Budget {
    left: Cell<u64>,
}

impl Budget {
    /// Creates a budget of this many steps.
    pub fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps) }
    }

    /// Takes steps.
    pub fn spend(&self, steps: u64) -> Result<()> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(Error::new(ErrorKind::OutOfSteps))
            }
        }
    }

    /// Takes the steps for a text of this many bytes.
    pub fn text(&self, bytes: usize) -> Result<()> {
        self.spend((bytes / BYTES_PER_STEP) as u64)
    }

    /// Takes the steps for a list of this many elements.
    pub fn list(&self, elements: usize) -> Result<()> {
        self.text(elements.saturating_mul(16))
    }
}
