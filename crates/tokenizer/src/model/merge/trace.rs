//! Joining the symbols of a word, and telling each join.

use super::symbol::{Join, Symbol};
use crate::trace::{LONGEST, Merge};

/// Joins symbols as [`merge_word`](super::merge_word) does, in the square of their number.
pub(crate) fn trace_merges(
    word: &[u8],
    symbols: &mut Vec<Symbol>,
    has_ranks: bool,
    join: impl Fn(Symbol, Symbol) -> Option<Join>,
) -> Vec<Merge> {
    let mut merges = Vec::new();
    if symbols.len() > LONGEST {
        return merges;
    }
    let text = |symbol: Symbol| word[symbol.start..symbol.start + symbol.len].to_vec();
    loop {
        let pairs = symbols.windows(2).enumerate();
        let joins = pairs.filter_map(|(at, pair)| Some((join(pair[0], pair[1])?, at)));
        // Of equal ranks, the leftmost.
        let Some((Join { rank, id }, at)) = joins.min_by_key(|(join, at)| (join.rank, *at)) else {
            return merges;
        };
        let (left, right) = (symbols[at], symbols.remove(at + 1));
        let rank = has_ranks.then_some(rank);
        merges.push(Merge { at, left: text(left), right: text(right), id, rank });
        symbols[at].len += right.len;
        symbols[at].id = id;
    }
}
