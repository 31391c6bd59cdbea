//! One run of a program as kernels see it: inputs, positions, and values computed so far.

use std::borrow::Cow;
use std::collections::HashMap;

use gguf_graph::{RowDim, ValueId};

use crate::batch::Token;
use crate::executor::Executor;
use crate::matmul::{Input, MatmulContext, QuantizedInput};
use crate::sequence::Sequence;
use crate::value::Value;
use crate::watch::Watch;

/// Inputs of a program.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'r> {
    Tokens {
        tokens: &'r [Token],
        /// Features of the tokens, row by row; empty if the program does not read any.
        features: &'r [f32],
    },
    Features(&'r Value),
}

impl Inputs<'_> {
    /// Returns the number of rows of values of tokens or frames; 0 for other rows.
    pub fn rows(self, rows: RowDim) -> usize {
        match (rows, self) {
            (RowDim::Tokens, Inputs::Tokens { tokens, .. }) => tokens.len(),
            (RowDim::Frames { stride }, Inputs::Features(features)) => {
                features.rows.div_ceil(stride as usize)
            }
            _ => 0,
        }
    }
}

/// A run of a program.
pub(crate) struct Run<'r> {
    pub executor: &'r Executor,
    pub watch: &'r Watch<'r>,
    pub inputs: Inputs<'r>,
    /// Position of each token in its sequence.
    pub positions: Vec<usize>,
    /// Sequences of the batch in the order of their first tokens, with the rows of their tokens.
    pub groups: Vec<(usize, Vec<usize>)>,
    /// Rows of the tokens whose output is requested.
    pub outputs: Vec<usize>,
    /// Maximum number of tokens of a sequence.
    pub context_len: usize,
    values: Vec<Option<Value>>,
    quantized: Vec<QuantizedInput>,
}

impl<'r> Run<'r> {
    /// Begins a run of a program with a number of values.
    pub fn new(
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
        if let Inputs::Tokens { tokens, .. } = inputs {
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
        let quantized = std::iter::repeat_with(QuantizedInput::default).take(values).collect();
        let values = std::iter::repeat_with(|| None).take(values).collect();
        Self { executor, watch, inputs, positions, groups, outputs, context_len, values, quantized }
    }

    /// Returns the tokens; none in an encoder of features.
    pub fn tokens(&self) -> &'r [Token] {
        match self.inputs {
            Inputs::Tokens { tokens, .. } => tokens,
            Inputs::Features(_) => &[],
        }
    }

    /// Returns the sequences of a value with their rows. All frames belong to one sequence.
    pub fn groups_of(&self, value: &Value) -> Cow<'_, [(usize, Vec<usize>)]> {
        match self.inputs {
            Inputs::Tokens { .. } => Cow::Borrowed(&self.groups),
            Inputs::Features(_) => Cow::Owned(vec![(0, (0..value.rows).collect())]),
        }
    }

    /// Returns the context of matrix multiplications.
    pub fn matmul_context(&self) -> MatmulContext<'r> {
        let Executor { precision, simd, .. } = *self.executor;
        let repack_budget = &*self.executor.repack_budget;
        MatmulContext { precision, simd, repack_budget, watch: self.watch }
    }

    /// Returns a value.
    pub fn value(&self, id: ValueId) -> &Value {
        self.values[id.0 as usize].as_ref().expect("values live until their last use")
    }

    /// Returns a value as an input of a matrix multiplication.
    pub fn input(&self, id: ValueId) -> Input<'_> {
        Input { value: self.value(id), quantized: Some(&self.quantized[id.0 as usize]) }
    }

    /// Sets a value.
    pub fn set(&mut self, id: ValueId, value: Value) {
        self.values[id.0 as usize] = Some(value);
    }

    /// Removes a value.
    pub fn take(&mut self, id: ValueId) -> Option<Value> {
        self.quantized[id.0 as usize].clear();
        self.values[id.0 as usize].take()
    }

    /// Returns all values that are left.
    pub fn into_values(self) -> impl Iterator<Item = (ValueId, Value)> {
        let values = self.values.into_iter().zip(0..);
        values.filter_map(|(value, id)| Some((ValueId(id), value?)))
    }

    /// Returns a number of rows.
    pub fn rows(&self, rows: RowDim) -> usize {
        match rows {
            RowDim::Outputs => self.outputs.len(),
            RowDim::Sequences => self.groups.len(),
            RowDim::Tokens | RowDim::Frames { .. } => self.inputs.rows(rows),
        }
    }
}
