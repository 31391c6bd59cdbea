//! Joining the symbols of long words part by part, so that memory does not grow with the word.
//!
//! The result is that of joining the whole word. In a window, all is known but what the symbols at
//! its end become with what comes after. So the last symbol is uncertain from the start; and the
//! one before an uncertain symbol becomes uncertain when it could be joined with some token that
//! stands after it, and that would come before everything that is still to be done on its left.
//! What is certain in the end stays, and the next window begins behind it. Few symbols are
//! uncertain: a token as long as tokens can be is joined with nothing.

use super::queue::Queue;
use super::symbol::{Join, Symbol};
use super::whole::merge;
use crate::token_table::{Index, TokenTable};

/// Symbols that are joined at once.
const WINDOW: usize = 1 << 14;

/// The longest tokens, in bytes, for which there are windows: at each place all lengths are tried.
/// Real ones have up to a few hundred bytes.
const LONGEST: usize = 1 << 10;

/// Joins the symbols of a word and hands out those that remain.
///
/// `initial` are the symbols at first, from a place on; `join` says what two neighbours become, if
/// anything. All that is not an initial symbol is in the index.
pub(crate) fn merge_word<I: Iterator<Item = Symbol>>(
    word: &[u8],
    (index, pieces): (&Index, &TokenTable),
    symbols: &mut Vec<Symbol>,
    initial: impl Fn(usize) -> I,
    join: impl Fn(Symbol, Symbol) -> Option<Join>,
    out: impl FnMut(&Symbol),
) {
    let window = if index.longest() <= LONGEST { WINDOW } else { usize::MAX };
    let tokens_at = |start| {
        let longest = index.longest().min(word.len() - start);
        (1..=longest).filter_map(move |len| {
            let id = index.find(pieces, &word[start..start + len])?;
            Some(Symbol { start, len, id })
        })
    };
    by_windows(window, symbols, initial, join, tokens_at, out);
}

/// `tokens_at` are the tokens that may come to stand at a place.
fn by_windows<I: Iterator<Item = Symbol>, T: Iterator<Item = Symbol>>(
    mut window: usize,
    symbols: &mut Vec<Symbol>,
    initial: impl Fn(usize) -> I,
    join: impl Fn(Symbol, Symbol) -> Option<Join>,
    tokens_at: impl Fn(usize) -> T,
    mut out: impl FnMut(&Symbol),
) {
    let mut start = 0;
    loop {
        symbols.clear();
        symbols.extend(initial(start).take(window.saturating_add(1)));
        if symbols.len() <= window {
            merge(symbols, join);
            return symbols.iter().for_each(out);
        }
        let certain = settle(symbols, &join, |at| initial(at).take(1).chain(tokens_at(at)));
        symbols.iter().for_each(&mut out);
        start = symbols.last().map_or(start, |last| last.start + last.len);
        // Otherwise the work would be done again and again.
        if certain < window / 2 {
            window *= 2;
        }
    }
}

/// Joins symbols as far as that does not depend on what comes after them, and removes the others.
/// Returns how many of the symbols that there were at first are in what stays.
fn settle<T: Iterator<Item = Symbol>>(
    symbols: &mut Vec<Symbol>,
    join: impl Fn(Symbol, Symbol) -> Option<Join>,
    may_follow: impl Fn(usize) -> T,
) -> usize {
    let mut queue = Queue::new(symbols, &join);
    // The first uncertain symbol.
    let mut edge = symbols.len() - 1;
    // How soon the symbol before it could be joined with what comes to stand there.
    let threat = |symbols: &[Symbol], queue: &Queue, edge: usize| {
        let before = *symbols.get(queue.before(edge))?;
        let after = may_follow(symbols[edge].start);
        after.filter_map(|after| Some(join(before, after)?.rank)).min()
    };
    let mut soonest = threat(symbols, &queue, edge);
    let mut best = queue.pop(symbols);
    loop {
        match best {
            Some(pair) if pair.right >= edge => best = queue.pop(symbols),
            // Of equal ranks the leftmost is first.
            Some(pair) if soonest.is_none_or(|rank| pair.rank <= rank) => {
                let before = queue.before(edge);
                queue.join(symbols, pair, &join);
                if pair.right == before {
                    soonest = threat(symbols, &queue, edge);
                }
                best = queue.pop(symbols);
            }
            _ if soonest.is_some() => {
                edge = queue.before(edge);
                soonest = threat(symbols, &queue, edge);
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

    use super::super::whole::tests::random;
    use super::*;

    /// Random words over few letters and random vocabularies of both kinds: joined by the rank of
    /// the joint text, and by that of the pair.
    #[test]
    fn windows_do_not_show() {
        let mut below = random();
        let mut parted = 0;
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
            let join = |a: Symbol, b: Symbol| {
                let id = find(a.start, a.len + b.len)?;
                let of_pair =
                    (a.id ^ salt).wrapping_mul(31).wrapping_add(b.id).wrapping_mul(0x9e37);
                let rank = if round % 2 == 0 { id * 7 % 11 } else { of_pair % 13 };
                (rank < 12).then_some(Join { rank, id })
            };
            let symbol = |start, len| Some(Symbol { start, len, id: find(start, len)? });
            let initial = |from| (from..word.len()).filter_map(move |start| symbol(start, 1));
            let tokens_at =
                |start| (1..=8.min(word.len() - start)).filter_map(move |n| symbol(start, n));
            let mut whole: Vec<Symbol> = initial(0).collect();
            merge(&mut whole, join);
            let (mut symbols, mut parts) = (Vec::new(), Vec::new());
            by_windows(24, &mut symbols, initial, join, tokens_at, |symbol| parts.push(*symbol));
            assert_eq!(parts, whole);
            parted += usize::from(symbols.len() < whole.len());
        }
        // Most words were long enough, and most did not need larger and larger windows.
        assert!(parted > 250, "{parted}");
    }
}
