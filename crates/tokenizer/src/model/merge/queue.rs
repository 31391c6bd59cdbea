//! Priority queue of adjacent pairs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::symbol::{MergeRule, Symbol};

/// Queue of pairs of symbols. Symbols stay in place: one that is merged into its left neighbour has
/// length 0.
pub(super) struct Queue {
    previous: Vec<usize>,
    next: Vec<usize>,
    heap: BinaryHeap<Reverse<Pair>>,
}

/// Two adjacent symbols, by index, and the result of merging them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub rank: u32,
    left: usize,
    pub right: usize,
    /// Length of both; if a symbol has grown since, the pair is stale.
    len: usize,
    id: u32,
}

impl Queue {
    pub fn new(symbols: &[Symbol], rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>) -> Self {
        let end = symbols.len();
        let mut queue = Self {
            previous: (0..end).map(|i| i.wrapping_sub(1)).collect(),
            next: (1..=end).collect(),
            heap: BinaryHeap::with_capacity(end),
        };
        (1..end).for_each(|right| queue.push(symbols, right - 1, right, &rule));
        queue
    }

    fn push(
        &mut self,
        symbols: &[Symbol],
        left: usize,
        right: usize,
        rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>,
    ) {
        if let (Some(a), Some(b)) = (symbols.get(left), symbols.get(right))
            && let Some(MergeRule { rank, id }) = rule(*a, *b)
        {
            self.heap.push(Reverse(Pair { rank, left, right, len: a.len + b.len, id }));
        }
    }

    /// Removes and returns the pair of the lowest rank.
    pub fn pop(&mut self, symbols: &[Symbol]) -> Option<Pair> {
        loop {
            let Reverse(pair) = self.heap.pop()?;
            let (left, right) = (symbols[pair.left].len, symbols[pair.right].len);
            if left > 0 && right > 0 && left + right == pair.len {
                return Some(pair);
            }
        }
    }

    /// Merges a pair.
    pub fn merge(
        &mut self,
        symbols: &mut [Symbol],
        pair: Pair,
        rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>,
    ) {
        let Pair { left, right, len, id, .. } = pair;
        symbols[left].len = len;
        symbols[left].id = id;
        symbols[right].len = 0;
        self.next[left] = self.next[right];
        if let Some(after) = self.previous.get_mut(self.next[right]) {
            *after = left;
        }
        self.push(symbols, self.previous[left], left, &rule);
        self.push(symbols, left, self.next[left], &rule);
    }

    /// Returns the index of the symbol before another; wraps around for the first.
    pub fn before(&self, symbol: usize) -> usize {
        self.previous[symbol]
    }
}
