//! What is kept of a sequence between runs.

use gguf_graph::{Attention, Graph, Op, State, StateId, Wkv};

use crate::cache::{Cache, CacheType, Layout, Role};

/// What an operation keeps of a sequence.
#[derive(Clone)]
pub(crate) enum Kept {
    /// Keys and values.
    Cache {
        keys: Cache,
        values: Cache,
        /// Tokens that a row stands for: it is kept of the last of each block of so many.
        block: usize,
        /// Whether an encoder stored them.
        stored: bool,
    },
    /// The last ids.
    Tokens(Vec<u32>),
    /// Rows of a value, or other numbers.
    Floats(Vec<f32>),
}

/// A sequence: how many tokens it has, and its states.
#[derive(Clone)]
pub(crate) struct Sequence {
    pub len: usize,
    pub kept: Vec<Kept>,
}

impl Sequence {
    /// Without a token, for so many at most.
    pub fn new(graph: &Graph, cache_type: CacheType, tokens: usize) -> Self {
        let states = graph.raw().states.iter().zip(0..);
        let kept = states.map(|(state, id)| match *state {
            State::KvCache { key_width: keys, value_width: values, .. }
            | State::EncoderKv { key_width: keys, value_width: values } => {
                let (block, most) = match *state {
                    State::KvCache { block, .. } => (block as usize, tokens / block as usize),
                    _ => (1, usize::MAX),
                };
                let stored = matches!(state, State::EncoderKv { .. });
                let [keys, values] = layouts(graph, id, keys, values, state, cache_type)
                    .map(|layout| Cache::new(layout, most));
                Kept::Cache { keys, values, block, stored }
            }
            // One more while a token is put behind the others.
            State::TokenHistory { len: count } => {
                Kept::Tokens(Vec::with_capacity(count as usize + 1))
            }
            State::RowHistory { width, len: rows } => {
                Kept::Floats(vec![0.0; width as usize * rows as usize])
            }
            State::Recurrent { len } => Kept::Floats(initial(graph, id, len as usize)),
        });
        Self { len: 0, kept: kept.collect() }
    }
}

impl Sequence {
    /// Whether an encoder is to store something first.
    pub fn lacks_encoder(&self) -> bool {
        let is_empty = |kept: &Kept| matches!(kept, Kept::Cache { keys, stored: true, .. } if keys.rows() == 0);
        self.kept.iter().any(is_empty)
    }

    /// Whether the keys and values in a state are those of the tokens before a run, and no more.
    pub fn is_before_run(&self, state: StateId) -> bool {
        match &self.kept[state.0 as usize] {
            Kept::Cache { keys, block, .. } => keys.rows() == self.len / block,
            Kept::Tokens(_) | Kept::Floats(_) => false,
        }
    }

    /// Forgets all, but keeps the memory of it.
    pub fn clear(&mut self, graph: &Graph) {
        for ((kept, state), id) in self.kept.iter_mut().zip(&graph.raw().states).zip(0..) {
            match (kept, state) {
                (Kept::Cache { keys, values, .. }, _) => {
                    keys.truncate(0);
                    values.truncate(0);
                }
                (Kept::Tokens(ids), _) => ids.clear(),
                (Kept::Floats(numbers), State::Recurrent { len }) => {
                    *numbers = initial(graph, id, *len as usize);
                }
                (Kept::Floats(numbers), _) => numbers.fill(0.0),
            }
        }
        self.len = 0;
    }

    /// Forgets the tokens from `len` on, if it only has caches.
    pub fn truncate(&mut self, len: usize) -> bool {
        if self.kept.iter().any(|kept| matches!(kept, Kept::Floats(_) | Kept::Tokens(_))) {
            return false;
        }
        for kept in &mut self.kept {
            if let Kept::Cache { keys, values, block, stored: false } = kept {
                keys.truncate(len / *block);
                values.truncate(len / *block);
            }
        }
        self.len = len;
        true
    }
}

/// Bytes of each state of a sequence that is full; nothing for what an encoder stores, whose length nobody
/// knows before.
pub(crate) fn full_lens(graph: &Graph, cache_type: CacheType, tokens: usize) -> Vec<u64> {
    let of_state = |(state, id): (&State, u32)| match *state {
        State::KvCache { key_width: keys, value_width: values, block } => {
            layouts(graph, id, keys, values, state, cache_type)
                .map(|layout| layout.byte_len(tokens / block as usize))
                .into_iter()
                .fold(0, u64::saturating_add)
        }
        State::EncoderKv { .. } => 0,
        State::TokenHistory { len: count } => 4 * (u64::from(count) + 1),
        State::RowHistory { width, len: rows } => {
            4u64.saturating_mul(width.into()).saturating_mul(rows.into())
        }
        State::Recurrent { len } => 4 * u64::from(len),
    };
    graph.raw().states.iter().zip(0..).map(of_state).collect()
}

/// How keys and values of a state are laid out.
fn layouts(
    graph: &Graph,
    id: u32,
    keys: u32,
    values: u32,
    state: &State,
    cache_type: CacheType,
) -> [Layout; 2] {
    let heads = heads(graph, id);
    // What an encoder stored is read by every token: it stays as it is.
    let ty = if matches!(state, State::EncoderKv { .. }) { CacheType::F32 } else { cache_type };
    [(keys, Role::Keys), (values, Role::Values)].map(|(width, role)| Layout {
        ty,
        heads,
        len: width as usize / heads,
        role,
    })
}

/// Heads of the keys and values of a state.
fn heads(graph: &Graph, id: u32) -> usize {
    let programs = [Some(graph.main()), graph.encoder()].into_iter().flatten();
    let heads = programs.flat_map(|(program, _)| &program.ops).find_map(|op| match op {
        Op::Attention(Attention { heads_kv, .. }) if op.states().contains(&StateId(id)) => {
            Some(*heads_kv as usize)
        }
        _ => None,
    });
    heads.unwrap_or(1).max(1)
}

/// The numbers that a recurrence begins with.
fn initial(graph: &Graph, id: u32, len: usize) -> Vec<f32> {
    let is_v4 = graph
        .main()
        .0
        .ops
        .iter()
        .any(|op| matches!(op, Op::Wkv(Wkv::V4 { state, .. }) if state.0 == id));
    let mut numbers = vec![0.0; len];
    if is_v4 {
        numbers[len / 3 * 2..].fill(-1e38);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use gguf_graph::Limits;
    use serde_json::json;

    use super::*;

    #[test]
    fn full_states_take_what_was_foretold() {
        let raw = json!({
            "architecture": "x",
            "states": [{"kind": "kv_cache", "key_width": 96, "value_width": 72}, {"kind": "row_history", "width": 8, "len": 3},
                {"kind": "kv_cache", "key_width": 96, "value_width": 72, "block": 5}, {"kind": "token_history", "len": 2}],
            "weights": [{"name": "k", "shape": [96, 9]}, {"name": "v", "shape": [72, 9]}],
            "main": {"outputs": [{"kind": "hidden", "value": 2}], "ops": [
                {"op": "embedding", "table": 0, "index": "token"},
                {"op": "embedding", "table": 1, "index": "token"},
                {"op": "attention", "query": 0, "kv": {"cached": {"key": 0, "value": 1, "state": 0}},
                 "compressed": {"key": 0, "value": 1, "state": 2},
                 "heads": 3, "heads_kv": 3, "key_len": 32, "value_len": 24, "scale": 1.0, "mask": "causal"},
                {"op": "embedding", "table": 0, "index": "token"}]},
        });
        let graph = Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap();
        for ty in [CacheType::F32, CacheType::F16, CacheType::Q8_0] {
            for tokens in [1, 64, 100, 513] {
                let mut sequence = Sequence::new(&graph, ty, tokens);
                for kept in &mut sequence.kept {
                    if let Kept::Cache { keys, values, block, .. } = kept {
                        (0..tokens / *block).for_each(|_| keys.push(&[1.0; 96]));
                        (0..tokens / *block).for_each(|_| values.push(&[1.0; 72]));
                    }
                }
                let allocated = sequence.kept.iter().map(|kept| match kept {
                    Kept::Cache { keys, values, .. } => keys.allocated() + values.allocated(),
                    Kept::Tokens(ids) => 4 * ids.capacity() as u64,
                    Kept::Floats(numbers) => 4 * numbers.capacity() as u64,
                });
                let foretold: u64 = full_lens(&graph, ty, tokens).iter().sum();
                assert_eq!(allocated.sum::<u64>(), foretold, "{ty:?} {tokens}");
            }
        }
    }
}
