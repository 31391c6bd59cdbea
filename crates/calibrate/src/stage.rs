//! Where a run stops so that matrices can be encoded.

use gguf_graph::{Op, Program, RawGraph, ValueId, WeightId};

/// Tensors that are multiplied with the same values.
pub(crate) struct Stage {
    /// The first operation that multiplies them; those before it are done.
    pub op: usize,
    /// The names of the tensors.
    pub tensors: Vec<String>,
    /// What they are multiplied with.
    pub entering: Entering,
}

/// What is multiplied with tensors.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Entering {
    /// A value that operations before have made.
    Value {
        x: ValueId,
        /// Into how many equal parts each row of it is cut, each for a matrix of its own.
        parts: usize,
        /// What the product is added to, if there is one, and it is added right away.
        added_to: Option<ValueId>,
    },
    /// What the operation itself makes and gives to each of several matrices.
    Routed,
}

/// The names of the tensors that a graph multiplies values with, which can be calibrated if their type has blocks.
pub fn matrices(raw: &RawGraph) -> Vec<&str> {
    let found = raw.main.ops.iter().flat_map(|op| places(op, raw));
    found.flat_map(|(_, weights)| weights).map(|weight| name(raw, weight)).collect()
}

/// The stages of the main program, as [`stages_of`].
pub(crate) fn stages(raw: &RawGraph, wanted: impl Fn(&str) -> bool) -> Vec<Stage> {
    stages_of(&raw.main, raw, wanted)
}

/// The stages of a program, in its order, for tensors that are `wanted`. A tensor that is multiplied twice counts
/// where it is first.
pub(crate) fn stages_of(
    program: &Program,
    raw: &RawGraph,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for (op, operation) in program.ops.iter().enumerate() {
        for (mut entering, weights) in places(operation, raw) {
            let names = weights.into_iter().map(|weight| name(raw, weight));
            let is_new = |name: &&str| !stages.iter().any(|s| s.tensors.iter().any(|t| t == name));
            let tensors: Vec<String> =
                names.filter(|name| wanted(name)).filter(is_new).map(str::to_owned).collect();
            if tensors.is_empty() {
                continue;
            }
            if let Entering::Value { x, parts: 1, added_to } = &mut entering {
                let is_same = |other: &Stage| matches!(other.entering, Entering::Value { x: of, parts: 1, .. } if of == *x);
                if let Some(stage) = stages.iter_mut().find(|stage| is_same(stage)) {
                    stage.tensors.extend(tensors);
                    // One of several that read the same is no last one of a block.
                    stage.entering = Entering::Value { x: *x, parts: 1, added_to: None };
                    continue;
                }
                *added_to = other_summand(program, op);
            }
            stages.push(Stage { op, tensors, entering });
        }
    }
    stages
}

fn name(raw: &RawGraph, weight: WeightId) -> &str {
    &raw.weights[weight.0 as usize].name
}

/// What an operation multiplies with which weights.
fn places(op: &Op, raw: &RawGraph) -> Vec<(Entering, Vec<WeightId>)> {
    match op {
        Op::Product { x, weight, .. } => {
            vec![(Entering::Value { x: *x, parts: 1, added_to: None }, vec![*weight])]
        }
        Op::HeadProduct { x, weight } => {
            let shape = &raw.weights[weight.0 as usize].shape;
            // Of matrices that stand one below the other the shape does not tell how many there are.
            let Some(heads) = shape.get(2) else { return Vec::new() };
            let parts = *heads as usize;
            vec![(Entering::Value { x: *x, parts, added_to: None }, vec![*weight])]
        }
        Op::Experts(experts) => {
            let into: Vec<WeightId> = experts.gate.into_iter().chain([experts.up]).collect();
            vec![(Entering::Routed, into), (Entering::Routed, vec![experts.down])]
        }
        _ => Vec::new(),
    }
}

/// The other value of the sum that an operation's goes into, if it is made before, and nothing else reads it.
fn other_summand(program: &Program, op: usize) -> Option<ValueId> {
    let this = ValueId(op as u32);
    let mut readers = program.ops.iter().filter(|other| other.values().contains(&this));
    let (Some(Op::Add { a, b }), None) = (readers.next(), readers.next()) else { return None };
    let other = if *a == this { *b } else { *a };
    (other < this).then_some(other)
}
