//! Joining the symbols of a whole word.

use super::queue::Queue;
use super::symbol::{Join, NO_TOKEN, Symbol};

/// Scanning all pairs for the best one is fastest up to about this many symbols.
const SCANNED: usize = 32;

/// Joins symbols. `join` says what two neighbours become, if anything.
pub(super) fn merge(symbols: &mut Vec<Symbol>, join: impl Fn(Symbol, Symbol) -> Option<Join>) {
    if symbols.len() <= SCANNED { scan(symbols, join) } else { queue(symbols, join) }
}

/// In the square of the length, without an allocation.
fn scan(symbols: &mut Vec<Symbol>, join: impl Fn(Symbol, Symbol) -> Option<Join>) {
    const NONE: Join = Join { rank: u32::MAX, id: NO_TOKEN };
    // What each symbol becomes with the next one.
    let mut joins = [NONE; SCANNED];
    for (i, pair) in symbols.windows(2).enumerate() {
        joins[i] = join(pair[0], pair[1]).unwrap_or(NONE);
    }
    while symbols.len() > 1 {
        let count = symbols.len() - 1;
        let mut best = 0;
        for i in 1..count {
            if joins[i].rank < joins[best].rank {
                best = i;
            }
        }
        if joins[best].id == NO_TOKEN {
            return;
        }
        symbols[best].len += symbols[best + 1].len;
        symbols[best].id = joins[best].id;
        symbols.remove(best + 1);
        joins.copy_within(best + 1..count, best);
        if best > 0 {
            joins[best - 1] = join(symbols[best - 1], symbols[best]).unwrap_or(NONE);
        }
        if best + 1 < symbols.len() {
            joins[best] = join(symbols[best], symbols[best + 1]).unwrap_or(NONE);
        }
    }
}

/// In n log n steps.
fn queue(symbols: &mut Vec<Symbol>, join: impl Fn(Symbol, Symbol) -> Option<Join>) {
    let mut queue = Queue::new(symbols, &join);
    while let Some(pair) = queue.pop(symbols) {
        queue.join(symbols, pair, &join);
    }
    symbols.retain(|symbol| symbol.len > 0);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Numbers below others, in the same order each time.
    pub fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 1u64;
        move |n| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        }
    }

    /// Random words over few letters and a random table of joins: many ties, long chains.
    #[test]
    fn scanning_and_queueing_give_the_same() {
        let mut below = random();
        for _ in 0..300 {
            let salt = below(1 << 30) as u32;
            // The result depends on the lengths too: scores of joint texts do.
            let join = |a: Symbol, b: Symbol| {
                let mixed = (a.id ^ salt).wrapping_mul(31).wrapping_add(b.id).wrapping_mul(0x9e37);
                let total = (a.len + b.len) as u32;
                (mixed >> 3 & 3 != 0).then_some(Join { rank: mixed % 5 + total % 3, id: mixed % 7 })
            };
            let len = 1 + below(SCANNED as u64) as usize;
            let word: Vec<Symbol> =
                (0..len).map(|start| Symbol { start, len: 1, id: below(3) as u32 }).collect();
            let (mut scanned, mut queued) = (word.clone(), word);
            scan(&mut scanned, join);
            queue(&mut queued, join);
            assert_eq!(scanned, queued);
        }
    }
}
