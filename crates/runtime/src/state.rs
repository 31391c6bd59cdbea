//! What is kept of a sequence between runs.

use gguf_graph::{Attention, Graph, Memory, Op, State, Wkv};

use crate::cache::{Cache, CacheType};

/// What an operation keeps of a sequence.
#[derive(Clone)]
pub(crate) enum Kept {
    /// Keys and values.
    Cache {
        keys: Cache,
        values: Cache,
        /// Whether an encoder stored them.
        stored: bool,
    },
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
    /// Without a token.
    pub fn new(graph: &Graph, cache_type: CacheType) -> Self {
        let states = graph.raw().states.iter().zip(0..);
        let kept = states.map(|(state, id)| match *state {
            State::Cache { keys, values } | State::Stored { keys, values } => {
                let heads = heads(graph, id);
                // What an encoder stored is read by every token: it stays as it is.
                let stored = matches!(state, State::Stored { .. });
                let ty = if stored { CacheType::F32 } else { cache_type };
                let len = |width: u32| width as usize / heads;
                let keys = Cache::of_keys(ty, heads, len(keys));
                Kept::Cache { keys, values: Cache::of_values(ty, heads, len(values)), stored }
            }
            State::Rows { width, rows } => Kept::Floats(vec![0.0; width as usize * rows as usize]),
            State::Floats { len } => Kept::Floats(initial(graph, id, len as usize)),
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

    /// Forgets the tokens from `len` on, if it only has caches.
    pub fn truncate(&mut self, len: usize) -> bool {
        if self.kept.iter().any(|kept| matches!(kept, Kept::Floats(_))) {
            return false;
        }
        for kept in &mut self.kept {
            if let Kept::Cache { keys, values, stored: false } = kept {
                keys.truncate(len);
                values.truncate(len);
            }
        }
        self.len = len;
        true
    }
}

/// Heads of the keys and values of a state.
pub(crate) fn heads(graph: &Graph, id: u32) -> usize {
    let programs = [Some(graph.main()), graph.encoder()].into_iter().flatten();
    let heads = programs.flat_map(|(program, _)| &program.ops).find_map(|op| match op {
        Op::Attention(Attention {
            memory: Memory::Cached { state, .. } | Memory::Stored { state },
            heads_kv,
            ..
        }) if state.0 == id => Some(*heads_kv as usize),
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
