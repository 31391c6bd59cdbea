//! States of a sequence as arrays, which can be saved and restored.

use gguf::{Error, TensorType};
use gguf_graph::{Graph, Op, State, StateId};

use crate::context::Context;
use crate::kv_cache::KvCache;
use crate::memory_budget::out_of_memory;
use crate::sequence::{Sequence, SequenceState};

/// Name of the origin of the keys of a KV cache.
const ORIGIN: &str = "keys.origin";

/// An array of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateArray {
    /// Name, such as `states.3.keys`. Each state has other names.
    pub name: String,
    /// Type of the elements: F32, F16, a type of [`CacheType`](crate::CacheType), or I32 for token ids.
    pub tensor_type: TensorType,
    /// Elements of a row: of one head, if it is a KV cache.
    pub row_len: u64,
    /// Number of rows.
    pub rows: u64,
    /// Rows in the layout of a GGUF file, little endian.
    pub data: Vec<u8>,
}

impl Context {
    /// Returns the arrays of a sequence one after the other, so that only one is copied at a time; empty ones are left
    /// out. Nothing if there is no such sequence. The order of the numbers in KV caches is that of this version.
    pub fn states(&self, sequence: usize) -> impl Iterator<Item = StateArray> {
        let states = self.sequence(sequence).map_or(&[][..], Sequence::states);
        states.iter().enumerate().flat_map(|(id, state)| arrays(id, state))
    }

    /// Replaces a sequence by the first `tokens` of `saved` tokens whose states were saved of the same model with the same
    /// options. `read` returns the array of a name, or `None` if it was not saved.
    ///
    /// # Errors
    /// `state-invalid` if an array is missing, or has another type or size than the model needs for the saved tokens;
    /// `context-full` if the context is smaller than `tokens`; `request-invalid` if `tokens` is more than `saved`, or less
    /// and [`Context::can_truncate`] is false; the errors of `read`. The sequence is empty then.
    pub fn restore(
        &mut self,
        sequence: usize,
        saved: usize,
        tokens: usize,
        read: &mut dyn FnMut(&str) -> Result<Option<StateArray>, Error>,
    ) -> Result<(), Error> {
        self.clear(sequence);
        if tokens > saved || tokens < saved && !self.can_truncate() {
            let what = format!("{tokens} of {saved} saved tokens cannot be restored");
            return Err(Error::request("request-invalid", what, "restore all saved tokens"));
        }
        if tokens > self.room(sequence) {
            let room = self.room(sequence);
            let what = format!("{tokens} tokens are restored; the context has room for {room}");
            return Err(Error::request("context-full", what, "use a larger context"));
        }
        let executor = self.executor().clone();
        let Some(states) = self.sequence_mut(sequence) else { return Ok(()) };
        let restored = fill(executor.graph(), states, [saved, tokens], read);
        if restored.is_err() {
            self.clear(sequence);
        }
        restored
    }
}

/// Returns the arrays of a state that are not empty.
fn arrays(id: usize, state: &SequenceState) -> Vec<StateArray> {
    let array = |part, tensor_type, rows: usize, data: Vec<u8>| {
        let row_len = elements(tensor_type, data.len()) / rows.max(1) as u64;
        StateArray { name: name(id, part), tensor_type, row_len, rows: rows as u64, data }
    };
    let arrays = match state {
        SequenceState::Kv { keys, values, .. } => {
            let of = |part, cache: &KvCache| {
                array(part, cache.tensor_type(), cache.heads(), cache.to_bytes())
            };
            let origin = array(ORIGIN, TensorType::F32, keys.heads(), to_bytes(keys.origin()));
            vec![of("keys", keys), origin, of("values", values)]
        }
        SequenceState::Tokens(ids) => {
            let data = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            vec![array("tokens", TensorType::I32, 1, data)]
        }
        SequenceState::Floats(floats) => {
            vec![array("numbers", TensorType::F32, 1, to_bytes(floats))]
        }
    };
    arrays.into_iter().filter(|array| !array.data.is_empty()).collect()
}

fn to_bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

fn to_floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

/// Returns the number of elements of whole blocks.
fn elements(ty: TensorType, bytes: usize) -> u64 {
    ty.block().map_or(0, |(len, block_bytes)| bytes as u64 / block_bytes * len)
}

fn name(id: usize, part: &str) -> String {
    format!("states.{id}.{part}")
}

/// Fills the states of an empty sequence with the first tokens of those that were saved.
fn fill(
    graph: &Graph,
    sequence: &mut Sequence,
    [saved, tokens]: [usize; 2],
    read: &mut dyn FnMut(&str) -> Result<Option<StateArray>, Error>,
) -> Result<(), Error> {
    let mut read = |id: usize, part: &str, ty: TensorType, len: usize| {
        let name = name(id, part);
        let found = read(&name)?;
        let data = match found {
            Some(array) if array.tensor_type != ty => {
                let what = format!("`{name}` is {}, not {ty}", array.tensor_type);
                return Err(invalid(what));
            }
            Some(array) => array.data,
            None => Vec::new(),
        };
        if data.len() != len {
            let what = format!("`{name}` has {} bytes; {saved} tokens need {len}", data.len());
            return Err(invalid(what));
        }
        Ok(data)
    };
    for (id, state) in graph.raw().states.iter().enumerate() {
        let state_id = StateId(id as u32);
        match sequence.state_mut(state_id) {
            SequenceState::Kv { keys, values, block, is_encoder } => {
                let rows = |tokens: usize| if *is_encoder { 0 } else { tokens / *block };
                let has_values = has_values(graph, state_id);
                for (cache, part, is_used) in [(keys, "keys", true), (values, "values", has_values)]
                {
                    if !is_used {
                        continue;
                    }
                    let len = cache.data_len(rows(saved));
                    let bytes = usize::try_from(len).map_err(|_| out_of_memory(len))?;
                    let data = read(id, part, cache.tensor_type(), bytes)?;
                    let origin_len = 4 * cache.origin_len(rows(saved));
                    let origin = match origin_len {
                        0 => Vec::new(),
                        _ => read(id, ORIGIN, TensorType::F32, origin_len)?,
                    };
                    cache.reserve(rows(tokens)).map_err(|_| out_of_memory(len))?;
                    cache.fill(rows(tokens), &data, &to_floats(&origin).collect::<Vec<_>>());
                }
            }
            SequenceState::Tokens(ids) => {
                let State::TokenHistory { len } = *state else { continue };
                let data = read(id, "tokens", TensorType::I32, 4 * saved.min(len as usize))?;
                ids.extend(data.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id)));
            }
            SequenceState::Floats(floats) => {
                let data = read(id, "numbers", TensorType::F32, 4 * floats.len())?;
                floats.iter_mut().zip(to_floats(&data)).for_each(|(float, saved)| *float = saved);
            }
        }
    }
    sequence.len = tokens;
    Ok(())
}

/// Whether a KV cache has values: an index of keys has none.
fn has_values(graph: &Graph, id: StateId) -> bool {
    let reads = |op: &Op| matches!(op, Op::Attention(_)) && op.states().contains(&id);
    graph.main().0.ops.iter().any(reads)
}

fn invalid(what: String) -> Error {
    Error::request("state-invalid", what, "save the states again with this model and these options")
}
