//! States of a sequence of tokens.

use std::sync::Arc;

use gguf::Error;
use gguf_graph::{Attention, Graph, KvStore, Mask, Op, RowDim, State, StateId, Wkv};

use crate::cache_type::CacheType;
use crate::kv_cache::{KvCache, Layout, Role, kept_rows};
use crate::memory_budget::{out_of_memory, zeros};
use crate::options::ContextOptions;

/// State of an operation, for one sequence.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "a model has few states, most of them KV caches")]
pub(crate) enum SequenceState {
    /// Keys and values.
    Kv {
        keys: KvCache,
        values: KvCache,
        /// Tokens per row: the cache has a row for the last token of each block.
        block: usize,
    },
    /// Keys and values of the output of the encoder. Copies of a sequence share them.
    Encoder(Arc<EncoderKv>),
    /// Ids of the last tokens.
    Tokens(Vec<u32>),
    /// Last rows of a value, or a recurrent state.
    Floats(Vec<f32>),
}

/// Keys and values of the output of the encoder, which it writes once.
#[derive(Clone)]
pub(crate) struct EncoderKv {
    pub keys: KvCache,
    pub values: KvCache,
}

/// Length of a sequence, and copies of its states that are not KV caches: keys and values can be removed, but recurrent
/// states do not return to what they were.
pub struct Checkpoint {
    len: usize,
    states: Vec<Option<SequenceState>>,
}

/// A sequence of tokens: its length and its states.
#[derive(Clone)]
pub(crate) struct Sequence {
    pub len: usize,
    states: Vec<SequenceState>,
}

impl EncoderKv {
    /// Returns empty keys and values of the same layout.
    fn emptied(&self) -> Self {
        Self { keys: self.keys.emptied(), values: self.values.emptied() }
    }
}

impl Checkpoint {
    /// Returns the number of tokens of the sequence.
    pub fn tokens(&self) -> usize {
        self.len
    }
}

impl Sequence {
    /// Returns an empty sequence of at most `options.tokens` tokens.
    ///
    /// # Errors
    /// If the system does not have the memory.
    pub fn new(graph: &Graph, options: ContextOptions) -> Result<Self, Error> {
        let cache_type = options.cache_type;
        let heads = heads(graph);
        let state = |(state, heads): (&State, &Heads)| match *state {
            State::KvCache { block, .. } => {
                let block = block as usize;
                let rows = most_rows(*heads, options, block);
                let [keys, values] = layouts(*heads, state, cache_type)
                    .map(|layout| KvCache::new(layout, rows, heads.window));
                Ok(SequenceState::Kv { keys, values, block })
            }
            State::EncoderKv { .. } => {
                let [keys, values] = layouts(*heads, state, cache_type)
                    .map(|layout| KvCache::new(layout, usize::MAX, None));
                Ok(SequenceState::Encoder(Arc::new(EncoderKv { keys, values })))
            }
            State::TokenHistory { len } => {
                // One more, because a token is appended before the oldest one is removed.
                let len = len as usize + 1;
                let mut ids = Vec::new();
                ids.try_reserve_exact(len).map_err(|_| out_of_memory(4 * len as u64))?;
                Ok(SequenceState::Tokens(ids))
            }
            State::RowHistory { width, len } => {
                Ok(SequenceState::Floats(zeros(width as usize * len as usize)?))
            }
            State::Recurrent { len } => Ok(SequenceState::Floats(zeros(len as usize)?)),
        };
        let states: Result<_, Error> = graph.raw().states.iter().zip(&heads).map(state).collect();
        let mut sequence = Self { len: 0, states: states? };
        sequence.initialize_wkv4(graph);
        Ok(sequence)
    }

    /// Becomes a copy of another sequence of the same model, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        self.len = other.len;
        for (state, other) in self.states.iter_mut().zip(&other.states) {
            match (state, other) {
                (
                    SequenceState::Kv { keys, values, .. },
                    SequenceState::Kv { keys: other_keys, values: other_values, .. },
                ) => {
                    keys.copy_from(other_keys);
                    values.copy_from(other_values);
                }
                (state, other) => state.clone_from(other),
            }
        }
    }

    /// Reserves memory for the keys and values of more tokens in a KV cache.
    ///
    /// # Errors
    /// If the system does not have the memory.
    pub fn reserve_tokens(&mut self, id: StateId, tokens: usize) -> Result<(), Error> {
        let (first, len) = (self.len, self.len + tokens);
        match self.state_mut(id) {
            SequenceState::Kv { keys, values, block } => {
                let (first, rows) = (first / *block, len / *block);
                [keys, values].into_iter().try_for_each(|cache| reserve(cache, rows, first))
            }
            _ => Ok(()),
        }
    }

    /// Reserves memory for the keys and values of all rows of the encoder, if the state is its own.
    ///
    /// # Errors
    /// If the system does not have the memory.
    pub fn reserve_encoded(&mut self, id: StateId, rows: usize) -> Result<(), Error> {
        match self.state_mut(id) {
            SequenceState::Encoder(encoded) => {
                let EncoderKv { keys, values } = Arc::make_mut(encoded);
                [keys, values].into_iter().try_for_each(|cache| reserve(cache, rows, 0))
            }
            _ => Ok(()),
        }
    }

    /// Sets the initial values of the states of `wkv` version 4, which are not 0.
    fn initialize_wkv4(&mut self, graph: &Graph) {
        for op in &graph.main().0.ops {
            if let Op::Wkv(Wkv::V4 { state, .. }) = op {
                let floats = self.floats(*state);
                let maximums = floats.len() / 3 * 2;
                floats[maximums..].fill(-1e38);
            }
        }
    }

    /// Returns all states, by their ids.
    pub fn states(&self) -> &[SequenceState] {
        &self.states
    }

    /// Returns a state.
    pub fn state(&self, id: StateId) -> &SequenceState {
        &self.states[id.0 as usize]
    }

    /// Returns a state to write.
    pub fn state_mut(&mut self, id: StateId) -> &mut SequenceState {
        &mut self.states[id.0 as usize]
    }

    /// Returns the floats of a state that is a history of rows or a recurrent state.
    pub fn floats(&mut self, id: StateId) -> &mut [f32] {
        match self.state_mut(id) {
            SequenceState::Floats(floats) => floats,
            _ => unreachable!("the graph was checked"),
        }
    }

    /// Returns the token ids of a state that is a history of tokens.
    pub fn tokens(&mut self, id: StateId) -> &mut Vec<u32> {
        match self.state_mut(id) {
            SequenceState::Tokens(tokens) => tokens,
            _ => unreachable!("the graph was checked"),
        }
    }

    /// Whether a state needs the output of the encoder and does not have it.
    pub fn lacks_encoder(&self) -> bool {
        let is_empty = |state: &SequenceState| matches!(state, SequenceState::Encoder(encoded) if encoded.keys.rows() == 0);
        self.states.iter().any(is_empty)
    }

    /// Whether a KV cache holds the tokens before the run and no others.
    pub fn is_before_run(&self, id: StateId) -> bool {
        match self.state(id) {
            SequenceState::Kv { keys, block, .. } => keys.rows() == self.len / block,
            SequenceState::Encoder(_) | SequenceState::Tokens(_) | SequenceState::Floats(_) => {
                false
            }
        }
    }

    /// Whether a state is the same output of the encoder as that of another sequence.
    pub fn shares(&self, id: StateId, other: &Self) -> bool {
        match (self.state(id), other.state(id)) {
            (SequenceState::Encoder(a), SequenceState::Encoder(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Returns the size in bytes of the outputs of the encoder that the sequence does not share with one of `others`.
    pub fn encoded_size(&self, others: &[Self]) -> u64 {
        let size = |(id, state): (usize, &SequenceState)| match state {
            SequenceState::Encoder(encoded) => {
                let id = StateId(id as u32);
                let EncoderKv { keys, values } = &**encoded;
                match others.iter().any(|other| self.shares(id, other)) {
                    true => 0,
                    false => keys.byte_len(keys.rows()) + values.byte_len(values.rows()),
                }
            }
            _ => 0,
        };
        self.states.iter().enumerate().map(size).sum()
    }

    /// Removes all tokens, and the output of the encoder. Allocated memory stays, unless it is shared with a copy.
    pub fn clear(&mut self, graph: &Graph) {
        for state in &mut self.states {
            match state {
                SequenceState::Kv { keys, values, .. } => {
                    keys.truncate(0);
                    values.truncate(0);
                }
                SequenceState::Encoder(encoded) => match Arc::get_mut(encoded) {
                    Some(EncoderKv { keys, values }) => {
                        keys.truncate(0);
                        values.truncate(0);
                    }
                    None => *encoded = Arc::new(encoded.emptied()),
                },
                SequenceState::Tokens(ids) => ids.clear(),
                SequenceState::Floats(floats) => floats.fill(0.0),
            }
        }
        self.initialize_wkv4(graph);
        self.len = 0;
    }

    /// Returns what [`Sequence::rewind`] needs to return to this length.
    pub fn checkpoint(&self) -> Checkpoint {
        let copy = |state: &SequenceState| match state {
            SequenceState::Kv { .. } | SequenceState::Encoder(_) => None,
            SequenceState::Tokens(_) | SequenceState::Floats(_) => Some(state.clone()),
        };
        Checkpoint { len: self.len, states: self.states.iter().map(copy).collect() }
    }

    /// Returns to a checkpoint of the sequence. Returns false, and does nothing, if it is shorter, or KV caches do not have the
    /// rows of the window before the checkpoint.
    pub fn rewind(&mut self, checkpoint: &Checkpoint) -> bool {
        if self.len < checkpoint.len || !self.truncate_caches(checkpoint.len) {
            return false;
        }
        for (state, saved) in self.states.iter_mut().zip(&checkpoint.states) {
            if let Some(saved) = saved {
                state.clone_from(saved);
            }
        }
        true
    }

    /// Removes the tokens from position `len` on. Returns false, and does nothing, if a state is not a KV cache, or does not
    /// have the rows of the window before that position.
    pub fn truncate(&mut self, len: usize) -> bool {
        let is_cache = |state: &SequenceState| {
            matches!(state, SequenceState::Kv { .. } | SequenceState::Encoder(_))
        };
        self.states.iter().all(is_cache) && self.truncate_caches(len)
    }

    /// Removes the keys and values from position `len` on. Other states remain.
    fn truncate_caches(&mut self, len: usize) -> bool {
        let can_truncate = |state: &SequenceState| match state {
            SequenceState::Kv { keys, values, block } => {
                [keys, values].iter().all(|cache| cache.can_truncate(len / block))
            }
            _ => true,
        };
        if !self.states.iter().all(can_truncate) {
            return false;
        }
        for state in &mut self.states {
            if let SequenceState::Kv { keys, values, block } = state {
                keys.truncate(len / *block);
                values.truncate(len / *block);
            }
        }
        self.len = len;
        true
    }
}

/// Returns the size in bytes of each state of a full sequence; 0 for states of the encoder, whose length is unknown
/// before it runs.
pub(crate) fn full_sizes(graph: &Graph, options: ContextOptions) -> Vec<u64> {
    let size = |(state, heads): (&State, &Heads)| match *state {
        State::KvCache { block, .. } => layouts(*heads, state, options.cache_type)
            .map(|layout| layout.byte_len(most_rows(*heads, options, block as usize)))
            .into_iter()
            .fold(0, u64::saturating_add),
        State::EncoderKv { .. } => 0,
        State::TokenHistory { len } => 4 * (u64::from(len) + 1),
        State::RowHistory { width, len } => {
            4u64.saturating_mul(width.into()).saturating_mul(len.into())
        }
        State::Recurrent { len } => 4 * u64::from(len),
    };
    graph.raw().states.iter().zip(&heads(graph)).map(size).collect()
}

/// Returns the size in bytes of the lists and structs of the states of a sequence, besides their elements.
pub(crate) fn fixed_size(graph: &Graph) -> u64 {
    let lists = |heads: usize| 2 * (heads as u64).saturating_mul(size_of::<Vec<f32>>() as u64);
    let state =
        |heads: &Heads| lists(heads.count).saturating_add(size_of::<SequenceState>() as u64);
    heads(graph).iter().map(state).fold(0, u64::saturating_add)
}

/// Returns the size in bytes of the states of the encoder of a sequence, given the type of KV caches and the number of rows
/// of each kind.
pub(crate) fn encoder_size(
    graph: &Graph,
    cache_type: CacheType,
    rows: impl Fn(RowDim) -> u64,
) -> u64 {
    let Some((program, shapes)) = graph.encoder() else { return 0 };
    let heads = heads(graph);
    let size = |op: &Op| match op {
        Op::KvStore(KvStore { key, state, .. }) if is_of_encoder(graph, *state) => {
            let rows = usize::try_from(rows(shapes[key.0 as usize].rows)).unwrap_or(usize::MAX);
            let (state, heads) = (state.0 as usize, heads[state.0 as usize]);
            layouts(heads, &graph.raw().states[state], cache_type)
                .map(|layout| layout.byte_len(rows))
                .into_iter()
                .fold(0, u64::saturating_add)
        }
        _ => 0,
    };
    program.ops.iter().map(size).fold(0, u64::saturating_add)
}

/// Whether the encoder writes all rows of a state.
fn is_of_encoder(graph: &Graph, state: StateId) -> bool {
    matches!(graph.raw().states[state.0 as usize], State::EncoderKv { .. })
}

/// Reserves memory for a cache to have a number of rows, of which the run computes those from `first` on.
fn reserve(cache: &mut KvCache, rows: usize, first: usize) -> Result<(), Error> {
    let more = rows.saturating_sub(cache.rows());
    cache.reserve(more, first).map_err(|_| out_of_memory(cache.byte_len(rows)))
}

/// Returns the maximum number of rows that a KV cache with a number of tokens per row keeps.
fn most_rows(heads: Heads, options: ContextOptions, block: usize) -> usize {
    let all = options.tokens / block;
    heads.window.map_or(all, |window| all.min(kept_rows(window, options.batch)))
}

/// Returns the layouts of the keys and values of a state; of nothing for other states.
fn layouts(heads: Heads, state: &State, cache_type: CacheType) -> [Layout; 2] {
    let (key_width, value_width, ty) = match *state {
        State::KvCache { key_width, value_width, .. } if heads.are_attended => {
            (key_width, value_width, cache_type)
        }
        State::KvCache { key_width, value_width, .. } => {
            (key_width, value_width, cache_type.for_selection())
        }
        State::EncoderKv { key_width, value_width } => {
            (key_width, value_width, cache_type.for_encoder())
        }
        _ => (0, 0, cache_type),
    };
    let heads = heads.count;
    [(key_width, Role::Keys), (value_width, Role::Values)].map(|(width, role)| Layout {
        ty,
        heads,
        len: width as usize / heads,
        role,
    })
}

/// Key heads of a state.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    /// Number of key heads.
    count: usize,
    /// Whether attention reads them, with values. Others select rows, and have no values.
    pub are_attended: bool,
    /// Number of tokens that the widest of its masks allows, up to the present one; `None` for all.
    window: Option<usize>,
}

/// Returns the key heads of each state.
pub(crate) fn heads(graph: &Graph) -> Vec<Heads> {
    let states = graph.raw().states.len();
    let mut heads = vec![Heads { count: 1, are_attended: false, window: None }; states];
    let programs = [Some(graph.main()), graph.encoder()].into_iter().flatten();
    for op in programs.flat_map(|(program, _)| &program.ops) {
        if let Op::Attention(Attention { heads_kv, .. }) = op {
            op.states().iter().for_each(|state| {
                let of_state = &mut heads[state.0 as usize];
                // The graph was checked: all operations that read a state have the same number.
                (of_state.count, of_state.are_attended) = (*heads_kv as usize, true);
            });
        }
    }
    for (of_state, window) in heads.iter_mut().zip(windows(graph)) {
        of_state.window = window.map(|window| window as usize);
    }
    heads
}

/// Returns the number of tokens to which the tokens of all operations that read a KV cache attend; `None` for all.
pub(crate) fn windows(graph: &Graph) -> Vec<Option<u32>> {
    let mut windows: Vec<Option<Option<u32>>> = vec![None; graph.raw().states.len()];
    for op in &graph.main().0.ops {
        let window = match op {
            Op::Attention(Attention {
                mask: Mask::SlidingWindow(n) | Mask::Chunked(n) | Mask::LookaheadWindow(n),
                ..
            }) => Some(*n),
            _ => None,
        };
        let compressed = match op {
            Op::Attention(Attention { compressed: Some(blocks), .. }) => Some(blocks.state),
            _ => None,
        };
        for state in op.states() {
            // Masks do not restrict compressed blocks.
            let window = window.filter(|_| compressed != Some(state));
            let widest = &mut windows[state.0 as usize];
            *widest = Some(match *widest {
                Some(other) => other.zip(window).map(|(a, b)| a.max(b)),
                None => window,
            });
        }
    }
    windows.into_iter().map(Option::flatten).collect()
}

#[cfg(test)]
mod tests {
    use gguf_graph::Limits;
    use serde_json::json;

    use super::*;

    #[test]
    fn full_states_have_the_computed_size() {
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
        for ty in CacheType::ALL {
            for tokens in [1, 64, 100, 513] {
                let options =
                    ContextOptions { tokens, cache_type: ty, ..ContextOptions::default() };
                let mut sequence = Sequence::new(&graph, options).unwrap();
                let ids = [0, 2].map(StateId);
                ids.iter().for_each(|id| sequence.reserve_tokens(*id, tokens).unwrap());
                for state in &mut sequence.states {
                    if let SequenceState::Kv { keys, values, block } = state {
                        (0..tokens / *block).for_each(|_| keys.append(&[&[1.0; 96]]));
                        (0..tokens / *block).for_each(|_| values.append(&[&[1.0; 72]]));
                    }
                }
                let allocated = sequence.states.iter().map(|state| match state {
                    SequenceState::Kv { keys, values, .. } => keys.allocated() + values.allocated(),
                    SequenceState::Tokens(ids) => 4 * ids.capacity() as u64,
                    SequenceState::Floats(floats) => 4 * floats.capacity() as u64,
                    SequenceState::Encoder(_) => 0,
                });
                let computed: u64 = full_sizes(&graph, options).iter().sum();
                assert_eq!(allocated.sum::<u64>(), computed, "{ty:?} {tokens}");
            }
        }
    }
}
