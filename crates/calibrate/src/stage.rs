//! Stages: the points of the graph at which a run stops so that matrices can be encoded.

use std::collections::HashSet;

use gguf_graph::{Add, BatchedMatmul, Matmul, Op, Program, RawGraph, ValueId, WeightId};

/// Tensors with a common input.
pub(crate) struct Stage {
    /// Index of the first operation that multiplies with them; all earlier operations are done.
    pub op: usize,
    /// Names of the tensors.
    pub tensors: Vec<String>,
    /// Input of the matrices.
    pub input: StageInput,
}

/// Input of the matrices of a stage.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum StageInput {
    /// A value of an earlier operation.
    Value {
        x: ValueId,
        /// Number of equal parts of each row, each for a matrix of its own.
        parts: usize,
        /// Value that the output of the only matrix is added to right away, if there is one.
        added_to: Option<ValueId>,
    },
    /// Rows that the operation itself routes to several matrices (MoE).
    Routed,
}

/// Returns the names of the weight matrices of a graph, which can be calibrated if their type is a
/// block type.
pub fn matmul_weights(raw: &RawGraph) -> Vec<&str> {
    let found = raw.main.ops.iter().flat_map(|op| matmuls(op, raw));
    found.flat_map(|(_, weights)| weights).map(|weight| name(raw, weight)).collect()
}

/// Returns the stages of the main program; see [`program_stages`].
pub(crate) fn stages(raw: &RawGraph, select: impl Fn(&str) -> bool) -> Vec<Stage> {
    program_stages(&raw.main, raw, select)
}

/// Returns the stages of a program in graph order, for tensors that `select` accepts. A tensor that
/// is used twice belongs to its first use.
pub(crate) fn program_stages(
    program: &Program,
    raw: &RawGraph,
    select: impl Fn(&str) -> bool,
) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for (op, operation) in program.ops.iter().enumerate() {
        for (mut input, weights) in matmuls(operation, raw) {
            let names = weights.into_iter().map(|weight| name(raw, weight));
            let is_new = |name: &&str| !stages.iter().any(|s| s.tensors.iter().any(|t| t == name));
            let tensors: Vec<String> =
                names.filter(|name| select(name)).filter(is_new).map(str::to_owned).collect();
            if tensors.is_empty() {
                continue;
            }
            if let StageInput::Value { x, parts: 1, added_to } = &mut input {
                let is_same = |other: &Stage| matches!(other.input, StageInput::Value { x: of, parts: 1, .. } if of == *x);
                if let Some(stage) = stages.iter_mut().find(|stage| is_same(stage)) {
                    stage.tensors.extend(tensors);
                    // With several readers the residual sum no longer belongs to one matrix.
                    stage.input = StageInput::Value { x: *x, parts: 1, added_to: None };
                    continue;
                }
                *added_to = residual_operand(program, op);
            }
            stages.push(Stage { op, tensors, input });
        }
    }
    stages
}

fn name(raw: &RawGraph, weight: WeightId) -> &str {
    &raw.weights[weight.0 as usize].name
}

/// Returns the inputs and the weights of the matrix multiplications of an operation.
fn matmuls(op: &Op, raw: &RawGraph) -> Vec<(StageInput, Vec<WeightId>)> {
    match op {
        Op::Matmul(Matmul { x, weight, .. }) => {
            vec![(StageInput::Value { x: *x, parts: 1, added_to: None }, vec![*weight])]
        }
        Op::BatchedMatmul(BatchedMatmul { x, weight }) => {
            let shape = &raw.weights[weight.0 as usize].shape;
            // The shape of vertically stacked matrices does not tell their number.
            let Some(heads) = shape.get(2) else { return Vec::new() };
            let parts = *heads as usize;
            vec![(StageInput::Value { x: *x, parts, added_to: None }, vec![*weight])]
        }
        Op::Moe(experts) => {
            let into: Vec<WeightId> = experts.gate.into_iter().chain([experts.up]).collect();
            vec![(StageInput::Routed, into), (StageInput::Routed, vec![experts.down])]
        }
        _ => Vec::new(),
    }
}

/// Returns the values that only matrix multiplications read.
pub(crate) fn only_multiplied(program: &Program) -> HashSet<ValueId> {
    let (mut multiplied, mut read) = (HashSet::new(), HashSet::new());
    for op in &program.ops {
        let readers = if matches!(op, Op::Matmul(_)) { &mut multiplied } else { &mut read };
        readers.extend(op.inputs());
    }
    multiplied.difference(&read).copied().collect()
}

/// Returns the other operand of the addition that consumes the operation, if it is computed earlier
/// and nothing else reads the operation.
fn residual_operand(program: &Program, op: usize) -> Option<ValueId> {
    let this = ValueId(op as u32);
    let mut readers = program.ops.iter().filter(|other| other.inputs().contains(&this));
    let (Some(Op::Add(Add { a, b })), None) = (readers.next(), readers.next()) else { return None };
    let other = if *a == this { *b } else { *a };
    (other < this).then_some(other)
}
