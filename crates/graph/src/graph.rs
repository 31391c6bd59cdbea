//! A graph that is proven to fit together.

use std::collections::{HashMap, HashSet};

use gguf::Finding;

use crate::cost::Load;
use crate::op::{Attention, Memory, Op, Pooling};
use crate::raw::{Output, OutputKind, Program, RawGraph, State, StateId, ValueId, Weight};
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
        if raw.states.iter().any(|state| matches!(state, State::Cache { block: 0, .. })) {
            return Err(invalid("a cache keeps a row of each 0 tokens".to_owned()));
        }
        let mut names = HashSet::new();
        if let Some(weight) = raw.weights.iter().find(|weight| !names.insert(&*weight.name)) {
            return Err(invalid(format!("the weight {} is named twice", weight.name)));
        }
        let mut used = vec![None; raw.states.len()];
        let encoder = match &raw.encoder {
            Some(program) => shapes(&raw, program, true, limits, &mut used)?,
            None => Vec::new(),
        };
        let main = shapes(&raw, &raw.main, false, limits, &mut used)?;
        if let Some(state) = differing_heads(&raw) {
            let message = format!("operations read state {} by other numbers of heads", state.0);
            return Err(invalid(message));
        }
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

    /// The same graph with this pooling of what the last layer says, instead of the model's own.
    /// Matrices behind the model's own stay.
    ///
    /// # Errors
    /// `result-missing` if it does not compute hidden states of tokens.
    pub fn pooled(&self, kind: Pooling) -> Result<Self, Finding> {
        let Some((x, _)) = self.output(OutputKind::Hidden) else {
            let message = "the graph says nothing of tokens that could be pooled";
            return Err(Finding::error("result-missing", message)
                .help("`gguf graph` lists what the model computes"));
        };
        let mut raw = self.raw.clone();
        let Program { ops, outputs } = &mut raw.main;
        let own = outputs.iter().find(|output| output.kind == OutputKind::Pooled);
        let mut behind = Vec::new();
        let mut at = own.and_then(|output| ops.get(output.value.0 as usize));
        while let Some(Op::Product { x, weight, bias }) = at {
            behind.push((*weight, *bias));
            at = ops.get(x.0 as usize);
        }
        let mut push = |op| {
            ops.push(op);
            ValueId(u32::try_from(ops.len() - 1).unwrap_or(u32::MAX))
        };
        let mut value = push(Op::Pool { x, kind });
        for (weight, bias) in behind.into_iter().rev() {
            value = push(Op::Product { x: value, weight, bias });
        }
        outputs.retain(|output| output.kind != OutputKind::Pooled);
        outputs.push(Output { kind: OutputKind::Pooled, value });
        Self::new(raw, Limits::default())
    }

    /// Numbers that all caches keep of one token together; of a block the share of one.
    pub fn cache_width(&self) -> u64 {
        let width = |state: &State| match state {
            State::Cache { keys, values, block } => {
                (u64::from(*keys) + u64::from(*values)) / u64::from(*block).max(1)
            }
            _ => 0,
        };
        self.raw.states.iter().map(width).sum()
    }
}

/// A state that attention reads as different numbers of heads, which it cannot be stored by.
fn differing_heads(raw: &RawGraph) -> Option<StateId> {
    let mut heads: HashMap<StateId, u32> = HashMap::new();
    let programs = raw.encoder.iter().chain([&raw.main]);
    programs.flat_map(|program| &program.ops).find_map(|op| match op {
        Op::Attention(Attention { heads_kv, .. }) => op
            .states()
            .into_iter()
            .find(|state| heads.entry(*state).or_insert(*heads_kv) != heads_kv),
        _ => None,
    })
}

/// The shapes of all values of a program.
fn shapes(
    graph: &RawGraph,
    program: &Program,
    is_encoder: bool,
    limits: Limits,
    used: &mut [Option<Change>],
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
        for (state, kept) in op.changes() {
            let change = Change { is_encoder, kept };
            let seen = used.get_mut(state.0 as usize);
            let other = seen.map(|seen| seen.replace(change));
            if other.is_none_or(|other| !other.is_none_or(|other| other.is_same(change))) {
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

/// How an operation changes a state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Change {
    is_encoder: bool,
    /// Keys and values that attention keeps there.
    kept: Option<(ValueId, ValueId)>,
}

impl Change {
    /// Whether it makes no difference that both do it.
    fn is_same(self, other: Self) -> bool {
        self.kept.is_some() && self == other
    }
}

impl Op {
    /// The states that it changes, which no other operation may change in another way, and the keys and
    /// values that it keeps there.
    fn changes(&self) -> Vec<(StateId, Option<(ValueId, ValueId)>)> {
        let Self::Attention(Attention { memory, blocks, .. }) = self else {
            return self.states().into_iter().map(|state| (state, None)).collect();
        };
        let of_memory = match *memory {
            Memory::Cached { key, value, state } => Some((state, Some((key, value)))),
            Memory::Given { .. } | Memory::Stored { .. } => None,
        };
        let of_blocks = blocks.map(|blocks| (blocks.state, Some((blocks.key, blocks.value))));
        of_memory.into_iter().chain(of_blocks).collect()
    }
}

fn invalid(message: String) -> Finding {
    Finding::error("graph-invalid", message)
        .help("the graph of the file is damaged, or made by a faulty program")
}

fn limit(message: String) -> Finding {
    Finding::error("graph-limit", message).help("no model is so large; the graph may mean harm")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What is wrong with a graph of these parts.
    fn fault(states: Value, encoder: Value, main: Value) -> String {
        let outputs = json!([{"kind": "hidden", "value": 0}]);
        let raw = json!({
            "architecture": "x", "states": states,
            "weights": [{"name": "table", "shape": [4, 9]}],
            "encoder": {"ops": encoder, "outputs": []}, "main": {"ops": main, "outputs": outputs},
        });
        let raw: RawGraph = serde_json::from_value(raw).unwrap();
        Graph::new(raw, Limits::default()).unwrap_err().message.into_string()
    }

    #[test]
    fn an_encoder_reads_frames_of_one_width_or_tokens() {
        let main = json!([{"op": "embed", "table": 0, "index": "token"}]);
        let frames = json!({"op": "features", "width": 4});
        let tokens = json!({"op": "embed", "table": 0, "index": "token"});
        let both = json!([tokens, frames]);
        let message = fault(json!([]), both, main.clone());
        assert_eq!(message, "encoder, operation 0: an encoder of frames has no tokens");
        let two = json!([frames, {"op": "features", "width": 5}]);
        let message = fault(json!([]), two, main);
        assert_eq!(message, "encoder, operation 1: widths of the features: 5 and 4");
    }

    #[test]
    fn all_read_a_state_by_the_same_heads() {
        let attention = |heads: u32, len: u32| {
            json!({"op": "attention", "query": 0, "memory": {"stored": {"state": 0}},
                "heads": heads, "heads_kv": heads, "key_len": len, "value_len": len,
                "scale": 1.0, "mask": "all"})
        };
        let embed = json!({"op": "embed", "table": 0, "index": "token"});
        let main = json!([embed, attention(2, 2), attention(4, 1)]);
        let states = json!([{"kind": "stored", "keys": 4, "values": 4}]);
        let message = fault(states, json!([{"op": "features", "width": 4}]), main);
        assert_eq!(message, "operations read state 0 by other numbers of heads");
    }
}
