//! Merging with a record of each merge.

use super::symbol::{MergeRule, Symbol};
use crate::trace::{MAX_TRACED_SYMBOLS, Merge};

/// Merges symbols as [`merge_word`](super::merge_word) does, in quadratic time, and returns each
/// merge.
pub(crate) fn trace_merges(
    word: &[u8],
    symbols: &mut Vec<Symbol>,
    has_ranks: bool,
    rule: impl Fn(Symbol, Symbol) -> Option<MergeRule>,
) -> Vec<Merge> {
    let mut merges = Vec::new();
    if symbols.len() > MAX_TRACED_SYMBOLS {
        return merges;
    }
    let text = |symbol: Symbol| word[symbol.start..symbol.start + symbol.len].to_vec();
    loop {
        let pairs = symbols.windows(2).enumerate();
        let rules = pairs.filter_map(|(at, pair)| Some((rule(pair[0], pair[1])?, at)));
        // Of equal ranks, the leftmost.
        let Some((MergeRule { rank, id }, at)) = rules.min_by_key(|(rule, at)| (rule.rank, *at))
        else {
            return merges;
        };
        let (left, right) = (symbols[at], symbols.remove(at + 1));
        let rank = has_ranks.then_some(rank);
        merges.push(Merge { at, left: text(left), right: text(right), id, rank });
        symbols[at].len += right.len;
        symbols[at].id = id;
    }
}
