//! The pairs of neighbours that can be joined, the best first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::symbol::{Join, Symbol};

/// Pairs among symbols that stay where they are: one that went into the symbol on its left has no
/// length any more.
pub(super) struct Queue {
    previous: Vec<usize>,
    next: Vec<usize>,
    waiting: BinaryHeap<Reverse<Pair>>,
}

/// Two neighbours, by their numbers, and what they become.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub rank: u32,
    left: usize,
    pub right: usize,
    /// How long both are: a pair that has grown since is another pair.
    len: usize,
    id: u32,
}

impl Queue {
    pub fn new(symbols: &[Symbol], join: impl Fn(Symbol, Symbol) -> Option<Join>) -> Self {
        let end = symbols.len();
        let mut queue = Self {
            previous: (0..end).map(|i| i.wrapping_sub(1)).collect(),
            next: (1..=end).collect(),
            waiting: BinaryHeap::with_capacity(end),
        };
        (1..end).for_each(|right| queue.push(symbols, right - 1, right, &join));
        queue
    }

    fn push(
        &mut self,
        symbols: &[Symbol],
        left: usize,
        right: usize,
        join: impl Fn(Symbol, Symbol) -> Option<Join>,
    ) {
        if let (Some(a), Some(b)) = (symbols.get(left), symbols.get(right))
            && let Some(Join { rank, id }) = join(*a, *b)
        {
            self.waiting.push(Reverse(Pair { rank, left, right, len: a.len + b.len, id }));
        }
    }

    /// The best pair.
    pub fn pop(&mut self, symbols: &[Symbol]) -> Option<Pair> {
        loop {
            let Reverse(pair) = self.waiting.pop()?;
            let (left, right) = (symbols[pair.left].len, symbols[pair.right].len);
            if left > 0 && right > 0 && left + right == pair.len {
                return Some(pair);
            }
        }
    }

    /// Joins a pair.
    pub fn join(
        &mut self,
        symbols: &mut [Symbol],
        pair: Pair,
        join: impl Fn(Symbol, Symbol) -> Option<Join>,
    ) {
        let Pair { left, right, len, id, .. } = pair;
        symbols[left].len = len;
        symbols[left].id = id;
        symbols[right].len = 0;
        self.next[left] = self.next[right];
        if let Some(after) = self.previous.get_mut(self.next[right]) {
            *after = left;
        }
        self.push(symbols, self.previous[left], left, &join);
        self.push(symbols, left, self.next[left], &join);
    }

    /// The number of the symbol before another; of the first, none.
    pub fn before(&self, symbol: usize) -> usize {
        self.previous[symbol]
    }
}
