//! Merging of all symbols of a word.

use super::queue::Queue;
use super::symbol::{MergeRule, NO_TOKEN, Symbol};

/// Up to this many symbols, a linear scan for the best pair is fastest.
const MAX_SCANNED: usize = 32;

/// Merges symbols. `rule` returns the result of merging two neighbours, if there is one.
pub(super) fn merge(symbols: &mut Vec<Symbol>, rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>) {
    if symbols.len() <= MAX_SCANNED { scan(symbols, rule) } else { queue(symbols, rule) }
}

/// Merges in quadratic time, without an allocation.
fn scan(symbols: &mut Vec<Symbol>, rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>) {
    const NONE: MergeRule = MergeRule { rank: u32::MAX, id: NO_TOKEN };
    // Result of merging each symbol with the next one.
    let mut rules = [NONE; MAX_SCANNED];
    for (i, pair) in symbols.windows(2).enumerate() {
        rules[i] = rule(pair[0], pair[1]).unwrap_or(NONE);
    }
    while symbols.len() > 1 {
        let count = symbols.len() - 1;
        let mut best = 0;
        for i in 1..count {
            if rules[i].rank < rules[best].rank {
                best = i;
            }
        }
        if rules[best].id == NO_TOKEN {
            return;
        }
        symbols[best].len += symbols[best + 1].len;
        symbols[best].id = rules[best].id;
        symbols.remove(best + 1);
        rules.copy_within(best + 1..count, best);
        if best > 0 {
            rules[best - 1] = rule(symbols[best - 1], symbols[best]).unwrap_or(NONE);
        }
        if best + 1 < symbols.len() {
            rules[best] = rule(symbols[best], symbols[best + 1]).unwrap_or(NONE);
        }
    }
}

/// Merges in O(n log n).
fn queue(symbols: &mut Vec<Symbol>, rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>) {
    let mut queue = Queue::new(symbols, &rule);
    while let Some(pair) = queue.pop(symbols) {
        queue.merge(symbols, pair, &rule);
    }
    symbols.retain(|symbol| symbol.len > 0);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a deterministic generator of numbers below `n`.
    pub fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 1u64;
        move |n| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        }
    }

    /// Random words over few letters and a random table of merges: many ties, long chains.
    #[test]
    fn scan_and_queue_agree() {
        let mut below = random();
        for _ in 0..300 {
            let salt = below(1 << 30) as u32;
            // The result depends on the lengths too, as scores of merged texts do.
            let rule = |a: Symbol, b: Symbol| {
                let mixed = (a.id ^ salt).wrapping_mul(31).wrapping_add(b.id).wrapping_mul(0x9e37);
                let total = (a.len + b.len) as u32;
                (mixed >> 3 & 3 != 0)
                    .then_some(MergeRule { rank: mixed % 5 + total % 3, id: mixed % 7 })
            };
            let len = 1 + below(MAX_SCANNED as u64) as usize;
            let word: Vec<Symbol> =
                (0..len).map(|start| Symbol { start, len: 1, id: below(3) as u32 }).collect();
            let (mut scanned, mut queued) = (word.clone(), word);
            scan(&mut scanned, rule);
            queue(&mut queued, rule);
            assert_eq!(scanned, queued);
        }
    }
}
