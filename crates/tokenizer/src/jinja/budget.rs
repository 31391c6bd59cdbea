//! Steps that a template may take.

use std::cell::Cell;

use super::error::{Error, ErrorKind, Result};

/// Bytes that are read, compared or written for the price of one step.
const BYTES_PER_STEP: u64 = 256;

/// Price of an element of a list in bytes: its size.
const ELEMENT: usize = 64;

/// Remaining steps. A statement, an operation and an iteration cost one step. Work on texts and
/// lists costs more the longer they are, and is paid before memory is allocated: the steps bound
/// the time and the memory of a rendering.
#[derive(Debug)]
pub struct Budget {
    /// Bytes that the steps are worth.
    left: Cell<u64>,
}

impl Budget {
    /// Creates a budget of this many steps.
    pub fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps.saturating_mul(BYTES_PER_STEP)) }
    }

    /// Takes steps.
    pub fn spend(&self, steps: u64) -> Result<()> {
        self.take(steps.saturating_mul(BYTES_PER_STEP))
    }

    /// Takes the steps for a text of this many bytes.
    pub fn text(&self, bytes: usize) -> Result<()> {
        self.take(bytes as u64)
    }

    /// Takes the steps for a list of this many elements.
    pub fn list(&self, elements: usize) -> Result<()> {
        self.text(elements.saturating_mul(ELEMENT))
    }

    fn take(&self, bytes: u64) -> Result<()> {
        match self.left.get().checked_sub(bytes) {
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
}
