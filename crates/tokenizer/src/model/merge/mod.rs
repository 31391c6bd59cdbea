//! Merging of adjacent symbols by rank, shared by both kinds of byte-pair encoding.

mod queue;
mod symbol;
mod trace;
mod windows;
mod word;

pub(crate) use symbol::{MergeRule, NO_TOKEN, Symbol, char_len, characters};
pub(crate) use trace::trace_merges;
pub(crate) use windows::merge_word;
