//! Memory for the time of a computation, which each thread keeps for the next one: neither asked of the
//! system nor zeroed each time.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Numbers of a line of the cache: where vectors begin at such a line, none of them is in two.
const LINE: usize = 16;

/// Numbers that are anything at first, from the beginning of a cache line on.
pub(crate) struct Scratch {
    memory: Vec<f32>,
    first: usize,
    len: usize,
}

impl Scratch {
    /// So many of them.
    pub fn new(len: usize) -> Self {
        // While it waits for others, a thread may do another computation: that one takes other memory.
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
    fn memory_is_used_again() {
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
