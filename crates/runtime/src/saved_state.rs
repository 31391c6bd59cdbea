//! States of a sequence as arrays, which can be saved and restored.

use gguf::{Error, TensorType};
use gguf_graph::{Graph, State, StateId};

use crate::context::Context;
use crate::kv_cache::{BLOCK, KvCache};
use crate::memory_budget::out_of_memory;
use crate::sequence::{Sequence, SequenceState, heads};

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
    /// options. `read` returns the array of a name, or `None` if it was not saved. Returns whether that is possible: not all
    /// models can do without the last tokens ([`Context::truncate`]). Otherwise, the sequence is empty.
    ///
    /// # Errors
    /// `state-invalid` if an array is missing, or has another type or size than the model needs for the saved tokens;
    /// `context-full` if the context is smaller than `tokens`; the errors of `read`. The sequence is empty then.
    pub fn restore(
        &mut self,
        sequence: usize,
        saved: usize,
        tokens: usize,
        read: &mut dyn FnMut(&str) -> Result<Option<StateArray>, Error>,
    ) -> Result<bool, Error> {
        self.clear(sequence);
        if tokens > saved || tokens < saved && !self.can_truncate() {
            return Ok(false);
        }
        if tokens > self.room(sequence) {
            let room = self.room(sequence);
            let what = format!("{tokens} tokens are restored; the context has room for {room}");
            return Err(Error::request("context-full", what, "use a larger context"));
        }
        let executor = self.executor().clone();
        let Some(states) = self.sequence_mut(sequence) else { return Ok(false) };
        let restored = fill(executor.graph(), states, [saved, tokens], read);
        if !matches!(restored, Ok(true)) {
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
        // Computed again from the input of the encoder.
        SequenceState::Encoder(_) => Vec::new(),
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

/// Fills the states of an empty sequence with the first tokens of those that were saved. Returns whether all rows that they
/// need were kept.
fn fill(
    graph: &Graph,
    sequence: &mut Sequence,
    [saved, tokens]: [usize; 2],
    read: &mut dyn FnMut(&str) -> Result<Option<StateArray>, Error>,
) -> Result<bool, Error> {
    let mut read = |name: &str, ty: TensorType| match read(name)? {
        Some(array) if array.tensor_type != ty => {
            let what = format!("`{name}` is {}, not {ty}", array.tensor_type);
            Err(invalid(what))
        }
        Some(array) => Ok(array.data),
        None => Ok(Vec::new()),
    };
    let of_len = |name: &str, data: Vec<u8>, len: usize| match data.len() == len {
        true => Ok(data),
        false => {
            let what = format!("`{name}` has {} bytes; {saved} tokens need {len}", data.len());
            Err(invalid(what))
        }
    };
    let states = graph.raw().states.iter().zip(heads(graph));
    for (id, (state, heads)) in states.enumerate() {
        match sequence.state_mut(StateId(id as u32)) {
            // Models with an encoder have none after a prompt alone.
            SequenceState::Encoder(_) => {}
            SequenceState::Kv { keys, values, block } => {
                let (all, rows) = (saved / *block, tokens / *block);
                let parts = [(keys, "keys"), (values, "values")];
                let parts = parts.into_iter().take(if heads.are_attended { 2 } else { 1 });
                for (cache, part) in parts {
                    let name_of_rows = name(id, part);
                    let data = read(&name_of_rows, cache.tensor_type())?;
                    let dropped = dropped(cache, all, data.len());
                    let len = usize::try_from(cache.byte_len(all - dropped));
                    let len = len.map_err(|_| out_of_memory(cache.byte_len(all - dropped)))?;
                    let data = of_len(&name_of_rows, data, len)?;
                    let origin = match cache.origin_len(all) {
                        0 => Vec::new(),
                        len => {
                            let name = name(id, ORIGIN);
                            of_len(&name, read(&name, TensorType::F32)?, 4 * len)?
                        }
                    };
                    if rows < dropped {
                        return Ok(false);
                    }
                    let memory = cache.byte_len(rows - dropped);
                    cache.reserve(rows - dropped, 0).map_err(|_| out_of_memory(memory))?;
                    let origin: Vec<f32> = to_floats(&origin).collect();
                    cache.fill([dropped, rows], &data, &origin);
                    if rows < all && !cache.can_truncate(rows) {
                        return Ok(false);
                    }
                }
            }
            SequenceState::Tokens(ids) => {
                let State::TokenHistory { len } = *state else { continue };
                let name = name(id, "tokens");
                let data = read(&name, TensorType::I32)?;
                let data = of_len(&name, data, 4 * saved.min(len as usize))?;
                ids.extend(data.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id)));
            }
            SequenceState::Floats(floats) => {
                let name = name(id, "numbers");
                let data = read(&name, TensorType::F32)?;
                let data = of_len(&name, data, 4 * floats.len())?;
                floats.iter_mut().zip(to_floats(&data)).for_each(|(float, saved)| *float = saved);
            }
        }
    }
    sequence.len = tokens;
    Ok(true)
}

/// Returns how many of the first rows a saved cache did not keep, given the size of its data in bytes: whole blocks before
/// the window.
fn dropped(cache: &KvCache, rows: usize, bytes: usize) -> usize {
    let Some(window) = cache.window() else { return 0 };
    let most = rows.saturating_sub(window) / BLOCK;
    let has_size = |blocks: &usize| cache.byte_len(rows - blocks * BLOCK) == bytes as u64;
    (0..=most).find(has_size).unwrap_or(0) * BLOCK
}

fn invalid(what: String) -> Error {
    Error::request("state-invalid", what, "save the states again with this model and these options")
}
