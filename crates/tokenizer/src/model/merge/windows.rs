//! Merging of long words in windows, so that memory does not grow with the word.
//!
//! The result equals that of merging the whole word. Within a window only the symbols at its end
//! depend on the text after it. The last symbol is uncertain from the start; its left neighbour
//! becomes uncertain if it could merge with some token that may follow, at a rank before all
//! pending merges on its left. The certain symbols are final, and the next window begins after
//! them. Few symbols are uncertain, because a token of maximum length merges with nothing.

use super::queue::Queue;
use super::symbol::{MergeRule, Symbol};
use super::word::merge;
use crate::token_table::{Index, TokenTable};

/// Number of symbols per window.
const WINDOW: usize = 1 << 14;

/// Maximum token length in bytes for windowed merging, which tries all lengths at each position.
/// Real tokens have up to a few hundred bytes.
const MAX_TOKEN_LEN: usize = 1 << 10;

/// Merges the symbols of a word and calls `out` with the resulting symbols.
///
/// `initial` returns the initial symbols from a position on; `rule` returns the result of merging
/// two neighbours, if there is one. Every merged symbol is in the index.
pub(crate) fn merge_word<I: Iterator<Item = Symbol>>(
    word: &[u8],
    (index, pieces): (&Index, &TokenTable),
    symbols: &mut Vec<Symbol>,
    initial: impl Fn(usize) -> I,
    rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>,
    out: impl FnMut(&Symbol),
) {
    let window = if index.longest() <= MAX_TOKEN_LEN { WINDOW } else { usize::MAX };
    let tokens_at = |start| {
        let longest = index.longest().min(word.len() - start);
        (1..=longest).filter_map(move |len| {
            let id = index.find(pieces, &word[start..start + len])?;
            Some(Symbol { start, len, id })
        })
    };
    by_windows(window, symbols, initial, rule, tokens_at, out);
}

/// Merges in windows. `tokens_at` returns the tokens that may begin at a position.
fn by_windows<I: Iterator<Item = Symbol>, T: Iterator<Item = Symbol>>(
    mut window: usize,
    symbols: &mut Vec<Symbol>,
    initial: impl Fn(usize) -> I,
    rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>,
    tokens_at: impl Fn(usize) -> T,
    mut out: impl FnMut(&Symbol),
) {
    let mut start = 0;
    loop {
        symbols.clear();
        symbols.extend(initial(start).take(window.saturating_add(1)));
        if symbols.len() <= window {
            merge(symbols, rule);
            return symbols.iter().for_each(out);
        }
        let certain = settle(symbols, &rule, |at| initial(at).take(1).chain(tokens_at(at)));
        symbols.iter().for_each(&mut out);
        start = symbols.last().map_or(start, |last| last.start + last.len);
        // With too few certain symbols, most of the work would be repeated: enlarge the window.
        if certain < window / 2 {
            window *= 2;
        }
    }
}

/// Merges symbols as far as the result does not depend on the text after them, and removes the
/// others. Returns the number of initial symbols that remain.
fn settle<T: Iterator<Item = Symbol>>(
    symbols: &mut Vec<Symbol>,
    rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>,
    may_follow: impl Fn(usize) -> T,
) -> usize {
    let mut queue = Queue::new(symbols, &rule);
    // The first uncertain symbol.
    let mut edge = symbols.len() - 1;
    // Lowest rank at which the symbol before it could merge with a token that may begin there.
    let lowest_rank_across = |symbols: &[Symbol], queue: &Queue, edge: usize| {
        let before = *symbols.get(queue.before(edge))?;
        let after = may_follow(symbols[edge].start);
        after.filter_map(|after| Some(rule(before, after)?.rank)).min()
    };
    let mut across = lowest_rank_across(symbols, &queue, edge);
    let mut best = queue.pop(symbols);
    loop {
        match best {
            Some(pair) if pair.right >= edge => best = queue.pop(symbols),
            // Of equal ranks, the leftmost is first.
            Some(pair) if across.is_none_or(|rank| pair.rank <= rank) => {
                let before = queue.before(edge);
                queue.merge(symbols, pair, &rule);
                if pair.right == before {
                    across = lowest_rank_across(symbols, &queue, edge);
                }
                best = queue.pop(symbols);
            }
            _ if across.is_some() => {
                edge = queue.before(edge);
                across = lowest_rank_across(symbols, &queue, edge);
            }
            _ => break,
        }
    }
    symbols.truncate(edge);
    symbols.retain(|symbol| symbol.len > 0);
    edge
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::word::tests::random;
    use super::*;

    /// Random words over few letters and random vocabularies of both kinds: merged by the rank of
    /// the merged text, and by that of the pair.
    #[test]
    fn windows_do_not_change_the_result() {
        let mut below = random();
        let mut windowed = 0;
        for round in 0..500 {
            let letters = 1 + below(3);
            let texts: Vec<Vec<u8>> = (0..letters)
                .map(|letter| vec![b'a' + letter as u8])
                .chain(
                    (0..30)
                        .map(|_| (0..2 + below(7)).map(|_| b'a' + below(letters) as u8).collect()),
                )
                .collect();
            let ids: HashMap<&[u8], u32> = (0..).zip(&texts).map(|(id, t)| (&**t, id)).collect();
            let salt = below(1 << 20) as u32;
            let word: Vec<u8> = (0..1 + below(300)).map(|_| b'a' + below(letters) as u8).collect();
            let find = |start: usize, len: usize| ids.get(&word[start..start + len]).copied();
            let rule = |a: Symbol, b: Symbol| {
                let id = find(a.start, a.len + b.len)?;
                let pair_hash =
                    (a.id ^ salt).wrapping_mul(31).wrapping_add(b.id).wrapping_mul(0x9e37);
                let rank = if round % 2 == 0 { id * 7 % 11 } else { pair_hash % 13 };
                (rank < 12).then_some(MergeRule { rank, id })
            };
            let symbol = |start, len| Some(Symbol { start, len, id: find(start, len)? });
            let initial = |from| (from..word.len()).filter_map(move |start| symbol(start, 1));
            let tokens_at =
                |start| (1..=8.min(word.len() - start)).filter_map(move |n| symbol(start, n));
            let mut whole: Vec<Symbol> = initial(0).collect();
            merge(&mut whole, rule);
            let (mut symbols, mut parts) = (Vec::new(), Vec::new());
            by_windows(24, &mut symbols, initial, rule, tokens_at, |symbol| parts.push(*symbol));
            assert_eq!(parts, whole);
            windowed += usize::from(symbols.len() < whole.len());
        }
        // Most words were longer than a window, and most did not need larger windows.
        assert!(windowed > 250, "{windowed}");
    }
}
