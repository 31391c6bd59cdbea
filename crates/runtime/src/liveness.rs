//! Liveness of the values of a program.

use gguf_graph::{Program, ValueId};

/// Returns, for each operation, the number of the last operation that reads its value: `usize::MAX` for requested
/// values, its own number if it only writes a state, and `None` if nothing needs it.
pub(crate) fn last_uses(program: &Program, requested: &[ValueId]) -> Vec<Option<usize>> {
    let mut last: Vec<Option<usize>> = vec![None; program.ops.len()];
    for id in requested {
        last[id.0 as usize] = Some(usize::MAX);
    }
    for (number, op) in program.ops.iter().enumerate().rev() {
        if last[number].is_none() && !op.states().is_empty() {
            last[number] = Some(number);
        }
        if last[number].is_some() {
            for input in op.inputs() {
                let last = &mut last[input.0 as usize];
                *last = (*last).or(Some(number));
            }
        }
    }
    last
}

/// Whether a value depends on later tokens of the batch, so that the batch must not be split.
pub(crate) fn needs_whole_batch(program: &Program, requested: ValueId) -> bool {
    let last = last_uses(program, &[requested]);
    program.ops.iter().zip(last).any(|(op, last)| last.is_some() && op.needs_whole_batch())
}
