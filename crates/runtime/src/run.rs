//! One run of a program.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use gguf::Error;
use gguf::units::bytes_apart;
use gguf_graph::{Op, Program, RowDim, Shape, ValueId};

use crate::batch::Token;
use crate::context::ContextOptions;
use crate::executor::Executor;
use crate::memory;
use crate::ops;
use crate::product::{How, Input, Kept};
use crate::state::Sequence;
use crate::value::Value;
use crate::watch::Watch;

/// What goes into a program.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'r> {
    Tokens(&'r [Token]),
    Features(&'r Value),
}

/// Everything that operations look at.
pub(crate) struct Run<'r> {
    pub executor: &'r Executor,
    pub watch: &'r Watch<'r>,
    pub inputs: Inputs<'r>,
    /// Of each token its position in its sequence.
    pub positions: Vec<usize>,
    /// The sequences of the batch in order of their first token, with the rows of their tokens.
    pub groups: Vec<(usize, Vec<usize>)>,
    /// Rows whose output is asked for.
    pub outputs: Vec<usize>,
    /// Tokens that a sequence may have.
    pub context_len: usize,
    values: Vec<Option<Value>>,
    /// Of each value what its products have in common.
    kept: Vec<Kept>,
}

/// Memory of values that nobody reads any more.
#[derive(Default)]
pub(crate) struct Free(Vec<Vec<f32>>);

impl Free {
    /// The smallest that holds so many numbers; none if there is no such.
    fn take(&mut self, len: usize) -> Vec<f32> {
        let large = self.0.iter().enumerate().filter(|(_, memory)| memory.capacity() >= len);
        let best = large.min_by_key(|(_, memory)| memory.capacity()).map(|(place, _)| place);
        best.map(|place| self.0.swap_remove(place)).unwrap_or_default()
    }

    /// Keeps that of a value for another one.
    fn give(&mut self, value: Option<Value>) {
        self.0.extend(value.map(|value| value.data));
    }

    /// Keeps no more than so many bytes for the next run.
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

/// Runs the operations that `wanted` needs, and those that change states.
#[expect(clippy::too_many_arguments, reason = "what a run is made of")]
pub(crate) fn run(
    executor: &Executor,
    program: (&Program, &[Shape]),
    wanted: &[ValueId],
    inputs: Inputs<'_>,
    sequences: &mut [Sequence],
    options: &ContextOptions,
    free: &mut Free,
    watch: &Watch<'_>,
) -> Result<Vec<Value>, Error> {
    let all = 0..program.0.ops.len();
    let nothing = Between::new();
    let mut made =
        run_some(executor, program, wanted, all, nothing, inputs, sequences, options, free, watch)?;
    Ok(wanted.iter().map(|id| made.remove(id).unwrap_or_default()).collect())
}

/// The values that operations made and later ones read, where a run stops between them.
pub type Between = BTreeMap<ValueId, Value>;

/// The same of some operations, given what those before them made: what is read after them.
#[expect(clippy::too_many_arguments, reason = "what a run is made of")]
pub(crate) fn run_some(
    executor: &Executor,
    (program, shapes): (&Program, &[Shape]),
    wanted: &[ValueId],
    ops: Range<usize>,
    before: Between,
    inputs: Inputs<'_>,
    sequences: &mut [Sequence],
    options: &ContextOptions,
    free: &mut Free,
    watch: &Watch<'_>,
) -> Result<Between, Error> {
    let mut run = Run::new(executor, inputs, sequences, options.tokens, program.ops.len(), watch);
    let last_use = last_use(program, wanted);
    let needed = memory::values(program, shapes, &last_use, |rows| run.rows(rows) as u64);
    if needed > options.memory {
        let [needed, allowed] = bytes_apart(needed, options.memory);
        let what = format!("a batch needs {needed} for its values, {allowed} are allowed");
        return Err(Error::request("memory-budget", what, "make the batch smaller"));
    }
    for (id, value) in before {
        run.values[id.0 as usize] = Some(value);
    }
    for number in ops {
        let (op, shape) = (&program.ops[number], &shapes[number]);
        if last_use[number].is_none() {
            continue;
        }
        let rows = run.rows(shape.rows);
        let width = shape.width as usize;
        let memory = free.take(rows * width);
        let out = match op {
            // What is most of a run writes every number, and needs no zeros before.
            Op::Matmul(_)
            | Op::LayerNorm(_)
            | Op::RmsNorm(_)
            | Op::L2Norm(_)
            | Op::Add(_)
            | Op::GatedActivation(_)
            | Op::Rope(_)
            | Op::Attention(_) => Value::anything(rows, width, memory),
            _ => Value::zeros(rows, width, memory),
        };
        let made = ops::compute(&run, op, out, sequences)?;
        run.watch.require()?;
        if let Some(observer) = watch.observer {
            observer.made(&executor.graph, number, &made);
        }
        run.values[number] = Some(made);
        for read in op.inputs() {
            let read = read.0 as usize;
            if last_use[read] == Some(number) {
                run.kept[read].clear();
                free.give(run.values[read].take());
            }
        }
        if last_use[number] == Some(number) {
            free.give(run.values[number].take());
        }
    }
    free.limit(needed);
    let left = run.values.into_iter().zip(0..);
    Ok(left.filter_map(|(value, id)| Some((ValueId(id), value?))).collect())
}

impl<'r> Run<'r> {
    fn new(
        executor: &'r Executor,
        inputs: Inputs<'r>,
        sequences: &[Sequence],
        context_len: usize,
        values: usize,
        watch: &'r Watch<'r>,
    ) -> Self {
        let mut positions = Vec::new();
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut outputs = Vec::new();
        if let Inputs::Tokens(tokens) = inputs {
            let mut places: HashMap<usize, usize> = HashMap::new();
            for (row, token) in tokens.iter().enumerate() {
                let place = *places.entry(token.sequence).or_insert_with(|| {
                    groups.push((token.sequence, Vec::new()));
                    groups.len() - 1
                });
                let rows = &mut groups[place].1;
                positions.push(sequences[token.sequence].len + rows.len());
                rows.push(row);
                if token.output {
                    outputs.push(row);
                }
            }
        }
        let kept = std::iter::repeat_with(Kept::default).take(values).collect();
        let values = std::iter::repeat_with(|| None).take(values).collect();
        Self { executor, watch, inputs, positions, groups, outputs, context_len, values, kept }
    }

    /// The tokens; none in an encoder of features.
    pub fn tokens(&self) -> &'r [Token] {
        match self.inputs {
            Inputs::Tokens(tokens) => tokens,
            Inputs::Features(_) => &[],
        }
    }

    /// The sequences of the rows of a value: frames, of which a convolution leaves fewer, are all of
    /// one sequence.
    pub fn groups_of(&self, value: &Value) -> Cow<'_, [(usize, Vec<usize>)]> {
        match self.inputs {
            Inputs::Tokens(_) => Cow::Borrowed(&self.groups),
            Inputs::Features(_) => Cow::Owned(vec![(0, (0..value.rows).collect())]),
        }
    }

    /// How products are computed.
    pub fn how(&self) -> How<'r> {
        let Executor { arithmetic, proof, .. } = *self.executor;
        let repacking = &*self.executor.repacking;
        How { arithmetic, instructions: proof, repacking, watch: self.watch }
    }

    /// A value that was made before.
    pub fn value(&self, id: ValueId) -> &Value {
        self.values[id.0 as usize].as_ref().expect("values live until their last use")
    }

    /// The same, for a product.
    pub fn input(&self, id: ValueId) -> Input<'_> {
        Input { value: self.value(id), kept: Some(&self.kept[id.0 as usize]) }
    }

    fn rows(&self, rows: RowDim) -> usize {
        match (rows, self.inputs) {
            (RowDim::Tokens, Inputs::Tokens(tokens)) => tokens.len(),
            (RowDim::Outputs, _) => self.outputs.len(),
            (RowDim::Sequences, _) => self.groups.len(),
            (RowDim::Frames { stride }, Inputs::Features(features)) => {
                features.rows.div_ceil(stride as usize)
            }
            _ => 0,
        }
    }
}

/// Whether what makes a value has to see all tokens of a batch together.
pub(crate) fn sees_whole_batch(program: &Program, wanted: ValueId) -> bool {
    let needed = last_use(program, &[wanted]);
    program.ops.iter().zip(needed).any(|(op, last)| last.is_some() && op.needs_whole_batch())
}

/// Of each operation the number of the last one that reads its value: its own if it is only done for
/// its state, beyond all if it is wanted, `None` if nobody needs it.
pub(crate) fn last_use(program: &Program, wanted: &[ValueId]) -> Vec<Option<usize>> {
    let mut last: Vec<Option<usize>> = vec![None; program.ops.len()];
    for id in wanted {
        last[id.0 as usize] = Some(usize::MAX);
    }
    for (number, op) in program.ops.iter().enumerate().rev() {
        if last[number].is_none() && !op.states().is_empty() {
            last[number] = Some(number);
        }
        if last[number].is_some() {
            for read in op.inputs() {
                let last = &mut last[read.0 as usize];
                *last = (*last).or(Some(number));
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_values_is_used_again_within_its_limit() {
        let mut free = Free::default();
        for len in [10, 1000, 100] {
            free.give(Some(Value::zeros(1, len, Vec::new())));
        }
        free.give(None);
        assert_eq!(free.take(11).capacity(), 100);
        assert_eq!(free.take(1001).capacity(), 0);
        free.limit(4 * 1000);
        assert_eq!(free.take(11).capacity(), 0);
        assert_eq!(free.take(1).capacity(), 10);
    }
}
