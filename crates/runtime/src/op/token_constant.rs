//! `token_constant`

use gguf_graph::TokenConstant;

use super::Kernel;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for TokenConstant {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        for (out, token) in out.data.iter_mut().zip(run.tokens()) {
            *out = by_token(&self.values, token.id, self.default);
        }
    }
}

/// Returns the value of a token in a list with ascending ids, or the default.
pub(super) fn by_token<T: Copy>(values: &[(u32, T)], token: u32, default: T) -> T {
    let found = values.binary_search_by_key(&token, |(token, _)| *token);
    found.map_or(default, |at| values[at].1)
}
