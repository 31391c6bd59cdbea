//! Execution of a program, operation by operation.

use std::collections::BTreeMap;
use std::ops::Range;

use gguf::Error;
use gguf_graph::{KvStore, Op, Program, Shape, ValueId};

use crate::executor::Executor;
use crate::liveness::last_uses;
use crate::memory;
use crate::memory_budget::{Reservation, zeros};
use crate::op::kernel;
use crate::options::ContextOptions;
use crate::run::{Inputs, Run};
use crate::sequence::Sequence;
use crate::value::Value;
use crate::watch::Watch;

/// Values that operations before a point of a program computed and later ones read.
pub type LiveValues = BTreeMap<ValueId, Value>;

/// Memory of dead values, for reuse.
#[derive(Default)]
pub(crate) struct MemoryPool(Vec<Vec<f32>>);

impl MemoryPool {
    /// Takes the smallest memory that holds `len` elements; empty memory if there is none.
    fn take(&mut self, len: usize) -> Vec<f32> {
        let large = self.0.iter().enumerate().filter(|(_, memory)| memory.capacity() >= len);
        let best = large.min_by_key(|(_, memory)| memory.capacity()).map(|(place, _)| place);
        best.map(|place| self.0.swap_remove(place)).unwrap_or_default()
    }

    /// Adds the memory of a value.
    fn give(&mut self, value: Option<Value>) {
        self.0.extend(value.map(|value| value.data));
    }

    /// Frees memory above a limit in bytes.
    fn limit(&mut self, bytes: u64) {
        self.0.sort_by_key(Vec::capacity);
        let mut left = bytes;
        self.0.retain(|memory| {
            let rest = left.checked_sub(4 * memory.capacity() as u64);
            left = rest.unwrap_or(left);
            rest.is_some()
        });
    }
}

/// Runs the operations of a program on a batch.
pub(crate) struct Interpreter<'r> {
    pub executor: &'r Executor,
    pub sequences: &'r mut [Sequence],
    pub options: &'r ContextOptions,
    pub pool: &'r mut MemoryPool,
    /// Memory of the values in the budget.
    pub values: &'r mut Reservation,
    pub watch: &'r Watch<'r>,
}

impl Interpreter<'_> {
    /// Runs the operations that requested values need, and those that write states. Returns the requested values.
    pub fn run(
        self,
        program: (&Program, &[Shape]),
        requested: &[ValueId],
        inputs: Inputs<'_>,
    ) -> Result<Vec<Value>, Error> {
        let all = 0..program.0.ops.len();
        let mut values = self.run_range(program, requested, all, LiveValues::new(), inputs)?;
        let mut take = |(number, id): (usize, &ValueId)| {
            let is_taken_again = requested[number + 1..].contains(id);
            let value = if is_taken_again { values.get(id).cloned() } else { values.remove(id) };
            value.unwrap_or_default()
        };
        Ok(requested.iter().enumerate().map(&mut take).collect())
    }

    /// Runs some operations, given the values computed before them. Returns the values that later ones read.
    pub fn run_range(
        self,
        (program, shapes): (&Program, &[Shape]),
        requested: &[ValueId],
        ops: Range<usize>,
        before: LiveValues,
        inputs: Inputs<'_>,
    ) -> Result<LiveValues, Error> {
        let Self { executor, sequences, options, pool, values, watch } = self;
        let count = program.ops.len();
        let mut run = Run::new(executor, inputs, sequences, options.tokens, count, watch);
        let last_uses = last_uses(program, requested);
        let rows = |rows| run.rows(rows) as u64;
        let needed = memory::peak(program, shapes, &last_uses, rows);
        let copies = memory::working_copies(program, shapes, rows);
        let what = || "the values of a batch".to_owned();
        values.grow_to(needed.saturating_add(copies), what, "make the batch smaller")?;
        let is_needed = |number: &usize| last_uses[*number].is_some();
        for number in ops.clone().filter(is_needed) {
            let (op, shape) = (&program.ops[number], &shapes[number]);
            kernel(op).check(&run, run.rows(shape.rows))?;
            reserve_states(&run, op, shapes, sequences)?;
        }
        for (id, value) in before {
            run.set(id, value);
        }
        let ops = ops.filter(is_needed);
        let weights = &executor.weights;
        let mut ahead = executor.read_ahead.begin(weights, program, ops.clone());
        for number in ops {
            if let Some(ahead) = &mut ahead {
                ahead.before(number);
            }
            let (op, shape) = (&program.ops[number], &shapes[number]);
            let rows = run.rows(shape.rows);
            let width = shape.width as usize;
            let memory = match pool.take(rows * width) {
                memory if memory.capacity() < rows * width => zeros(rows * width)?,
                memory => memory,
            };
            let kernel = kernel(op);
            let mut value = if kernel.overwrites() {
                Value::uninitialized(rows, width, memory)
            } else {
                Value::zeros(rows, width, memory)
            };
            kernel.compute(&run, sequences, &mut value);
            if let Some(ahead) = &mut ahead {
                ahead.after(number);
            }
            watch.check()?;
            if let Some(observer) = watch.observer {
                observer.computed(&executor.graph, number, &value);
            }
            let id = ValueId(number as u32);
            run.set(id, value);
            for input in op.inputs().into_iter().chain([id]) {
                if last_uses[input.0 as usize] == Some(number) {
                    pool.give(run.take(input));
                }
            }
        }
        pool.limit(needed);
        Ok(run.into_values().collect())
    }
}

/// Reserves memory for the rows that an operation appends to its states.
fn reserve_states(
    run: &Run<'_>,
    op: &Op,
    shapes: &[Shape],
    sequences: &mut [Sequence],
) -> Result<(), Error> {
    if let (Op::KvStore(KvStore { key, state, .. }), [sequence]) = (op, &mut *sequences) {
        sequence.reserve_encoded(*state, run.rows(shapes[key.0 as usize].rows))?;
    }
    for state in op.states() {
        for (sequence, rows) in &run.groups {
            sequences[*sequence].reserve_tokens(state, rows.len())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_within_the_limit() {
        let mut pool = MemoryPool::default();
        for len in [10, 1000, 100] {
            pool.give(Some(Value::zeros(1, len, Vec::new())));
        }
        pool.give(None);
        assert_eq!(pool.take(11).capacity(), 100);
        assert_eq!(pool.take(1001).capacity(), 0);
        pool.limit(4 * 1000);
        assert_eq!(pool.take(11).capacity(), 0);
        assert_eq!(pool.take(1).capacity(), 10);
    }
}
