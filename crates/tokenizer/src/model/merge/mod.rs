//! Joining neighbours, the best pair first, until none can be joined: what both kinds of byte
//! pair encoding do.

mod queue;
mod symbol;
mod trace;
mod whole;
mod windows;

pub(crate) use symbol::{Join, NO_TOKEN, Symbol, char_len, characters};
pub(crate) use trace::trace_merges;
pub(crate) use windows::merge_word;
