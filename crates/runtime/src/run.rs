//! One run of a program.

use std::borrow::Cow;
use std::collections::HashMap;

use gguf::Error;
use gguf_graph::{Program, Rows, Shape, ValueId};
use gguf_store::Progress;

use crate::batch::Token;
use crate::executor::Executor;
use crate::ops;
use crate::state::Sequence;
use crate::value::Value;

/// What goes into a program.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'r> {
    Tokens(&'r [Token]),
    Features(&'r Value),
}

/// Everything that operations look at.
pub(crate) struct Run<'r> {
    pub executor: &'r Executor,
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
    /// Memory of values that nobody reads any more.
    free: Vec<Vec<f32>>,
}

/// Runs the operations that `wanted` needs, and those that change states.
pub(crate) fn run(
    executor: &Executor,
    (program, shapes): (&Program, &[Shape]),
    wanted: &[ValueId],
    inputs: Inputs<'_>,
    sequences: &mut [Sequence],
    context_len: usize,
    progress: &dyn Progress,
) -> Result<Vec<Value>, Error> {
    let mut run = Run::new(executor, inputs, sequences, context_len, program.ops.len());
    let last_use = last_use(program, wanted);
    for (number, (op, shape)) in program.ops.iter().zip(shapes).enumerate() {
        if last_use[number].is_none() {
            continue;
        }
        progress.step(0)?;
        let rows = run.rows(shape.rows);
        let memory = run.free.pop().unwrap_or_default();
        let out = Value::zeros(rows, shape.width as usize, memory);
        let made = ops::compute(&run, op, out, sequences)?;
        run.values[number] = Some(made);
        for read in op.values() {
            let read = read.0 as usize;
            if last_use[read] == Some(number) {
                run.free.extend(run.values[read].take().map(|value| value.data));
            }
        }
        if last_use[number] == Some(number) {
            run.free.extend(run.values[number].take().map(|value| value.data));
        }
    }
    Ok(wanted.iter().map(|id| run.values[id.0 as usize].take().unwrap_or_default()).collect())
}

impl<'r> Run<'r> {
    fn new(
        executor: &'r Executor,
        inputs: Inputs<'r>,
        sequences: &[Sequence],
        context_len: usize,
        values: usize,
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
        let values = std::iter::repeat_with(|| None).take(values).collect();
        Self { executor, inputs, positions, groups, outputs, context_len, values, free: Vec::new() }
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

    /// A value that was made before.
    pub fn value(&self, id: ValueId) -> &Value {
        self.values[id.0 as usize].as_ref().expect("values live until their last use")
    }

    fn rows(&self, rows: Rows) -> usize {
        match (rows, self.inputs) {
            (Rows::Tokens, Inputs::Tokens(tokens)) => tokens.len(),
            (Rows::Outputs, _) => self.outputs.len(),
            (Rows::Sequences, _) => self.groups.len(),
            (Rows::Frames { stride }, Inputs::Features(features)) => {
                features.rows.div_ceil(stride as usize)
            }
            _ => 0,
        }
    }
}

/// Of each operation the number of the last one that reads its value: its own if it is only done for
/// its state, beyond all if it is wanted, `None` if nobody needs it.
fn last_use(program: &Program, wanted: &[ValueId]) -> Vec<Option<usize>> {
    let mut last: Vec<Option<usize>> = vec![None; program.ops.len()];
    for id in wanted {
        last[id.0 as usize] = Some(usize::MAX);
    }
    for (number, op) in program.ops.iter().enumerate().rev() {
        if last[number].is_none() && op.state().is_some() {
            last[number] = Some(number);
        }
        if last[number].is_some() {
            for read in op.values() {
                let last = &mut last[read.0 as usize];
                *last = (*last).or(Some(number));
            }
        }
    }
    last
}
