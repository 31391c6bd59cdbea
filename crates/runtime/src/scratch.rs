//! Memory for the time of a computation, which each thread keeps for the next one: neither asked of the
//! system nor zeroed each time.

use std::cell::RefCell;

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with so many numbers, which are anything.
pub(crate) fn with<T>(len: usize, work: impl FnOnce(&mut [f32]) -> T) -> T {
    // While it waits for others, a thread may do another computation: that one takes other memory.
    let mut memory = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    if memory.len() < len {
        memory.resize(len, 0.0);
    }
    let made = work(&mut memory[..len]);
    FREE.with_borrow_mut(|free| free.push(memory));
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        with(3, |outer| {
            outer.fill(1.0);
            with(2, |inner| inner.fill(2.0));
            assert_eq!(outer, [1.0; 3]);
        });
        assert_eq!(with(5, |memory| (memory.len(), memory[4])), (5, 0.0));
        assert_eq!(FREE.with_borrow(Vec::len), 2);
    }
}
