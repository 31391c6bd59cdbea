//! Scratch memory of a computation. Each thread reuses it, without allocating or zeroing it again.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Floats per cache line. Vectors aligned to a line never cross lines.
const LINE: usize = 16;

/// Scratch memory, aligned to a cache line. Its initial contents are unspecified.
pub(crate) struct Scratch {
    memory: Vec<f32>,
    first: usize,
    len: usize,
}

impl Scratch {
    /// Returns memory for `len` floats.
    pub fn new(len: usize) -> Self {
        // A thread that waits for others may begin another computation, which takes other memory.
        let mut memory = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
        if memory.len() < len + LINE {
            memory.resize(len + LINE, 0.0);
        }
        let first = memory.as_ptr().align_offset(4 * LINE).min(LINE);
        Self { memory, first, len }
    }
}

impl Deref for Scratch {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.memory[self.first..][..self.len]
    }
}

impl DerefMut for Scratch {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.first..][..self.len]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        FREE.with_borrow_mut(|free| free.push(memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused() {
        let mut outer = Scratch::new(3);
        outer.fill(1.0);
        {
            let mut inner = Scratch::new(2);
            inner.fill(2.0);
        }
        assert_eq!(*outer, [1.0; 3]);
        drop(outer);
        let one = Scratch::new(1000);
        assert_eq!((one.len(), one.as_ptr().align_offset(64)), (1000, 0));
        assert_eq!(FREE.with_borrow(Vec::len), 1);
    }
}
