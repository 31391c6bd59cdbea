//! `kv_store`

use std::sync::Arc;

use gguf_graph::{KvStore, StateId};

use super::Kernel;
use crate::run::Run;
use crate::sequence::{EncoderKv, Sequence, SequenceState};
use crate::value::Value;

impl Kernel for KvStore {
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value) {
        let (key, value) = (run.value(self.key), run.value(self.value));
        out.data.copy_from_slice(&key.data);
        for (sequence, rows) in &*run.groups_of(key) {
            append(run, &mut sequences[*sequence], self.state, (key, Some(value)), rows);
        }
    }
}

/// Appends keys, and values if there are any, to a state. A cache of blocks gets those of the last token of each.
pub(super) fn append(
    run: &Run<'_>,
    sequence: &mut Sequence,
    state: StateId,
    (key, value): (&Value, Option<&Value>),
    rows: &[usize],
) {
    let (keys, values, block) = match sequence.state_mut(state) {
        SequenceState::Kv { keys, values, block } => (keys, values, *block),
        SequenceState::Encoder(encoded) => {
            let EncoderKv { keys, values } = Arc::make_mut(encoded);
            (keys, values, 1)
        }
        SequenceState::Tokens(_) | SequenceState::Floats(_) => return,
    };
    // Frames have no positions, and their states no blocks.
    let ends_block = |position: &usize| (position + 1).is_multiple_of(block);
    let rows = rows.iter().filter(|row| run.positions.get(**row).is_none_or(ends_block));
    let rows: Vec<usize> = rows.copied().collect();
    keys.append(&select(key, &rows));
    if let Some(value) = value {
        values.append(&select(value, &rows));
    }
}

fn select<'v>(value: &'v Value, rows: &[usize]) -> Vec<&'v [f32]> {
    rows.iter().map(|row| value.row(*row)).collect()
}
