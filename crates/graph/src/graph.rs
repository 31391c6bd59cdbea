//! A graph that is proven to fit together.

use std::collections::HashSet;

use gguf::Finding;

use crate::cost::Load;
use crate::op::Op;
use crate::raw::{OutputKind, Program, RawGraph, State, StateId, ValueId, Weight};
use crate::shape::Place;

/// What a graph may ask for at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Operations of a program.
    pub ops: usize,
    /// Weights, and states.
    pub parts: usize,
    /// Numbers of all rows of one token together.
    pub width: u64,
    /// How often one token may be multiplied with each number of the weights, on average.
    pub reuse: u64,
}

impl Default for Limits {
    /// Far above any model that there is.
    fn default() -> Self {
        Self { ops: 100_000, parts: 1_000_000, width: 1 << 30, reuse: 256 }
    }
}

/// A graph whose every operation has the shapes, weights and states that it asks for.
///
/// ```
/// use gguf_graph::{Graph, Limits, RawGraph};
/// let mistaken = r#"{"architecture": "x", "weights": [], "states": [],
///     "main": {"ops": [{"op": "scale", "x": 0, "factor": 2.0}], "outputs": []}}"#;
/// let raw: RawGraph = serde_json::from_str(mistaken).unwrap();
/// let finding = Graph::new(raw, Limits::default()).unwrap_err();
/// assert_eq!(finding.code, "graph-invalid");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    raw: RawGraph,
    main: Vec<Shape>,
    encoder: Vec<Shape>,
}

/// The shape of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What it has a row for.
    pub rows: Rows,
    /// Numbers of a row.
    pub width: u32,
}

/// What a value has a row for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Each token of the run.
    Tokens,
    /// Each token whose result is asked for.
    Outputs,
    /// Each sequence of the run.
    Sequences,
    /// Each frame, or each of so many frames together.
    Frames {
        /// How many: `ceil(frames / stride)` rows.
        stride: u32,
    },
}

impl Graph {
    /// Checks a graph.
    ///
    /// # Errors
    /// `graph-invalid` with the operation that does not fit, `graph-limit` if there is too much of
    /// something.
    pub fn new(raw: RawGraph, limits: Limits) -> Result<Self, Finding> {
        if raw.weights.len().max(raw.states.len()) > limits.parts {
            return Err(limit(format!(
                "the graph has more than {} weights or states",
                limits.parts
            )));
        }
        let mut names = HashSet::new();
        if let Some(weight) = raw.weights.iter().find(|weight| !names.insert(&*weight.name)) {
            return Err(invalid(format!("the weight {} is named twice", weight.name)));
        }
        let mut used = vec![false; raw.states.len()];
        let encoder = match &raw.encoder {
            Some(program) => shapes(&raw, program, true, limits, &mut used)?,
            None => Vec::new(),
        };
        let main = shapes(&raw, &raw.main, false, limits, &mut used)?;
        if raw.main.outputs.is_empty() {
            return Err(invalid("main program: nothing comes out".to_owned()));
        }
        let graph = Self { raw, main, encoder };
        graph.require_end(limits.reuse)?;
        Ok(graph)
    }

    /// Refuses a graph that would multiply without end.
    fn require_end(&self, reuse: u64) -> Result<(), Finding> {
        /// Products that are quick whatever they are multiplied with.
        const FEW: u64 = 1 << 28;
        let one = Load { tokens: 1, outputs: 1, before: 0, frames: 1 };
        let costs = self.costs(one).into_iter().chain(self.encoder_costs(one));
        let products = costs.map(|cost| cost.multiply_adds).fold(0, u64::saturating_add);
        let elements =
            |weight: &Weight| weight.shape.iter().fold(1, |all: u64, n| all.saturating_mul(*n));
        let all = self.raw.weights.iter().map(elements).fold(0, u64::saturating_add);
        if products > all.saturating_mul(reuse).saturating_add(FEW) {
            let message = format!("a token takes {products} products with {all} weights");
            return Err(limit(message));
        }
        Ok(())
    }

    /// What it is made of.
    pub fn raw(&self) -> &RawGraph {
        &self.raw
    }

    /// The operations for tokens, and the shapes of their values.
    pub fn main(&self) -> (&Program, &[Shape]) {
        (&self.raw.main, &self.main)
    }

    /// The operations of the encoder, and the shapes of their values.
    pub fn encoder(&self) -> Option<(&Program, &[Shape])> {
        Some((self.raw.encoder.as_ref()?, &self.encoder))
    }

    /// The value of the main program of this kind, and its shape.
    pub fn output(&self, kind: OutputKind) -> Option<(ValueId, Shape)> {
        let found = self.raw.main.outputs.iter().find(|output| output.kind == kind)?;
        Some((found.value, *self.main.get(found.value.0 as usize)?))
    }

    /// Numbers that all caches keep of one token together.
    pub fn cache_width(&self) -> u64 {
        let width = |state: &State| match state {
            State::Cache { keys, values } => u64::from(*keys) + u64::from(*values),
            _ => 0,
        };
        self.raw.states.iter().map(width).sum()
    }
}

/// The shapes of all values of a program.
fn shapes(
    graph: &RawGraph,
    program: &Program,
    is_encoder: bool,
    limits: Limits,
    used: &mut [bool],
) -> Result<Vec<Shape>, Finding> {
    let name = if is_encoder { "encoder" } else { "main program" };
    if program.ops.len() > limits.ops {
        return Err(limit(format!("{name}: more than {} operations", limits.ops)));
    }
    let mut shapes = Vec::with_capacity(program.ops.len());
    let mut width = 0;
    for (number, op) in program.ops.iter().enumerate() {
        let place = Place { graph, shapes: &shapes, is_encoder };
        let at = |message: String| invalid(format!("{name}, operation {number}: {message}"));
        let shape = place.shape(op).map_err(at)?;
        width += u64::from(shape.width);
        if width > limits.width {
            return Err(limit(format!("{name}: more than {} numbers per token", limits.width)));
        }
        if let Some(state) = op.changes() {
            let seen = used.get_mut(state.0 as usize);
            if seen.is_none_or(|seen| std::mem::replace(seen, true)) {
                return Err(at(format!("another operation changes state {} too", state.0)));
            }
        }
        shapes.push(shape);
    }
    for output in &program.outputs {
        if output.value.0 as usize >= shapes.len() {
            return Err(invalid(format!("{name}: there is no value {}", output.value.0)));
        }
    }
    Ok(shapes)
}

impl Op {
    /// The state that it changes, which no other operation may.
    fn changes(&self) -> Option<StateId> {
        self.state().filter(|_| !self.reads_only())
    }
}

fn invalid(message: String) -> Finding {
    Finding::error("graph-invalid", message)
        .help("the graph of the file is damaged, or made by a faulty program")
}

fn limit(message: String) -> Finding {
    Finding::error("graph-limit", message).help("no model is so large; the graph may mean harm")
}
