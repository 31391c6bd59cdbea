//! A checked graph.

use std::collections::{HashMap, HashSet};

use gguf::Finding;

use crate::cost::{Cost, CostScope, Workload};
use crate::id::{StateId, ValueId};
use crate::op::{Matmul, Op, Pool, Pooling, StateWrite};
use crate::raw::{Output, OutputKind, Program, RawGraph};
use crate::scope::{Scope, invalid};
use crate::tensor::{Shape, State, Weight};

/// Limits of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of operations of a program.
    pub ops: usize,
    /// Maximum number of weights, and of states.
    pub tensors: usize,
    /// Maximum sum of the widths of all values of a program.
    pub width: u64,
    /// Maximum number of multiply-adds per token and element of the weights, on average.
    pub reuse: u64,
}

impl Default for Limits {
    /// Returns limits far above any existing model.
    fn default() -> Self {
        Self { ops: 100_000, tensors: 1_000_000, width: 1 << 30, reuse: 256 }
    }
}

/// A graph whose every operation fits its inputs, weights and states.
///
/// ```
/// use gguf_graph::{Graph, Limits, RawGraph};
/// let cyclic = r#"{"architecture": "x", "weights": [], "states": [],
///     "main": {"ops": [{"op": "scale", "x": 0, "factor": 2.0}], "outputs": []}}"#;
/// let raw: RawGraph = serde_json::from_str(cyclic).unwrap();
/// let finding = Graph::new(raw, Limits::default()).unwrap_err();
/// assert_eq!(finding.code, "graph-invalid");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    raw: RawGraph,
    main: Vec<Shape>,
    encoder: Vec<Shape>,
}

impl Graph {
    /// Checks a graph.
    ///
    /// # Errors
    /// `graph-invalid` with the operation that does not fit, `graph-limit` if the graph exceeds a limit.
    pub fn new(raw: RawGraph, limits: Limits) -> Result<Self, Finding> {
        if raw.weights.len().max(raw.states.len()) > limits.tensors {
            return Err(limit(format!(
                "the graph has more than {} weights or states",
                limits.tensors
            )));
        }
        if raw.states.iter().any(|state| matches!(state, State::KvCache { block: 0, .. })) {
            return Err(invalid("the `block` of a KV cache is 0; expected at least 1"));
        }
        let mut names = HashSet::new();
        if let Some(weight) = raw.weights.iter().find(|weight| !names.insert(&*weight.name)) {
            return Err(invalid(format!("the weight {} occurs twice", weight.name)));
        }
        let encoder = match &raw.encoder {
            Some(program) => shapes(&raw, program, true, limits)?,
            None => Vec::new(),
        };
        let reads_tokens = |program: &&Program| program.token_features_width().is_none();
        if raw.encoder.iter().filter(reads_tokens).any(|encoder| encoder.stores_tokens(&raw.states))
        {
            let message =
                "the encoder stores keys and values in a KV cache, but reads no features of tokens";
            return Err(invalid(message));
        }
        let main = shapes(&raw, &raw.main, false, limits)?;
        if let Some(state) = differing_heads(&raw) {
            let message = format!("operations read state {} with different `heads_kv`", state.0);
            return Err(invalid(message));
        }
        if raw.main.outputs.is_empty() {
            return Err(invalid("the main program has no outputs"));
        }
        let graph = Self { raw, main, encoder };
        graph.check_work(limits.reuse)?;
        Ok(graph)
    }

    /// Refuses a graph with far more multiply-adds than weights.
    fn check_work(&self, reuse: u64) -> Result<(), Finding> {
        /// Multiply-adds that are fast in any graph.
        const MIN_LIMIT: u64 = 1 << 28;
        let one = Workload { tokens: 1, outputs: 1, past: 0, frames: 1 };
        let costs = self.costs(one).into_iter().chain(self.encoder_costs(one));
        let multiply_adds = costs.map(|cost| cost.multiply_adds).fold(0, u64::saturating_add);
        let elements = self.raw.weights.iter().map(Weight::elements).fold(0, u64::saturating_add);
        if multiply_adds > elements.saturating_mul(reuse).saturating_add(MIN_LIMIT) {
            let message = format!(
                "a token takes {multiply_adds} multiply-adds with {elements} weight elements"
            );
            return Err(limit(message));
        }
        Ok(())
    }

    /// Returns the unchecked form.
    pub fn raw(&self) -> &RawGraph {
        &self.raw
    }

    /// Returns the main program, and the shapes of its values.
    pub fn main(&self) -> (&Program, &[Shape]) {
        (&self.raw.main, &self.main)
    }

    /// Returns the encoder, and the shapes of its values.
    pub fn encoder(&self) -> Option<(&Program, &[Shape])> {
        Some((self.raw.encoder.as_ref()?, &self.encoder))
    }

    /// Returns the result of this kind of the main program, and its shape.
    pub fn output(&self, kind: OutputKind) -> Option<(ValueId, Shape)> {
        let output = self.raw.main.outputs.iter().find(|output| output.kind == kind)?;
        Some((output.value, *self.main.get(output.value.0 as usize)?))
    }

    /// Returns the graph with another pooling type of the hidden states. The matrices after the model's own
    /// pooling apply to the new one too.
    ///
    /// # Errors
    /// `result-missing` if the graph does not compute hidden states.
    pub fn pooled(&self, kind: Pooling) -> Result<Self, Finding> {
        let Some((x, _)) = self.output(OutputKind::Hidden) else {
            let message = "the graph has no hidden states to pool";
            return Err(Finding::error("result-missing", message)
                .help("`gguf graph` lists what the model computes"));
        };
        let mut raw = self.raw.clone();
        let Program { ops, outputs } = &mut raw.main;
        let own = outputs.iter().find(|output| output.kind == OutputKind::Pooled);
        let mut dense = Vec::new();
        let mut last = own.and_then(|output| ops.get(output.value.0 as usize));
        while let Some(Op::Matmul(matmul)) = last {
            dense.push(*matmul);
            last = ops.get(matmul.x.0 as usize);
        }
        let mut push = |op: Op| {
            ops.push(op);
            ValueId(u32::try_from(ops.len() - 1).unwrap_or(u32::MAX))
        };
        let mut value = push(Pool { x, kind }.into());
        for matmul in dense.into_iter().rev() {
            value = push(Matmul { x: value, ..matmul }.into());
        }
        outputs.retain(|output| output.kind != OutputKind::Pooled);
        outputs.push(Output { kind: OutputKind::Pooled, value });
        Self::new(raw, Limits::default())
    }

    /// Returns the width of all KV caches per token; those of blocks count in proportion.
    pub fn cache_width(&self) -> u64 {
        let width = |state: &State| match state {
            State::KvCache { key_width, value_width, block } => {
                (u64::from(*key_width) + u64::from(*value_width)) / u64::from(*block).max(1)
            }
            _ => 0,
        };
        self.raw.states.iter().map(width).sum()
    }

    /// Returns the cost of each operation of the main program.
    pub fn costs(&self, workload: Workload) -> Vec<Cost> {
        let (program, shapes) = self.main();
        self.program_costs(program, shapes, workload)
    }

    /// Returns the cost of each operation of the encoder; empty if there is none.
    pub fn encoder_costs(&self, workload: Workload) -> Vec<Cost> {
        let costs = |(program, shapes)| self.program_costs(program, shapes, workload);
        self.encoder().map_or(Vec::new(), costs)
    }

    fn program_costs(&self, program: &Program, shapes: &[Shape], workload: Workload) -> Vec<Cost> {
        let RawGraph { weights, states, .. } = &self.raw;
        let cost = |(op, output): (&Op, &Shape)| {
            let rows = workload.rows(output.rows);
            let output = *output;
            let scope = CostScope { weights, states, shapes, output, rows, workload };
            let work = op.definition().cost(&scope);
            let weights = op.weights().into_iter().map(|id| (id, work.weight_share));
            Cost { rows, multiply_adds: work.multiply_adds, weights: weights.collect() }
        };
        program.ops.iter().zip(shapes).map(cost).collect()
    }
}

/// Returns a state that attention reads with different numbers of heads, which the KV cache does not support.
fn differing_heads(raw: &RawGraph) -> Option<StateId> {
    let mut heads: HashMap<StateId, u32> = HashMap::new();
    let programs = raw.encoder.iter().chain([&raw.main]);
    programs.flat_map(|program| &program.ops).find_map(|op| match op {
        Op::Attention(attention) => op
            .states()
            .into_iter()
            .find(|state| *heads.entry(*state).or_insert(attention.heads_kv) != attention.heads_kv),
        _ => None,
    })
}

/// Returns the shapes of all values of a program.
fn shapes(
    graph: &RawGraph,
    program: &Program,
    is_encoder: bool,
    limits: Limits,
) -> Result<Vec<Shape>, Finding> {
    let name = if is_encoder { "encoder" } else { "main program" };
    if program.ops.len() > limits.ops {
        return Err(limit(format!("{name}: more than {} operations", limits.ops)));
    }
    let features_width = graph.encoder.as_ref().and_then(Program::features_width);
    let features_width = features_width.and_then(|width| u32::try_from(width).ok());
    let mut shapes = Vec::with_capacity(program.ops.len());
    let mut writes: Vec<Option<StateWrite>> = vec![None; graph.states.len()];
    let mut width = 0;
    for (number, op) in program.ops.iter().enumerate() {
        let RawGraph { weights, states, .. } = graph;
        let scope = Scope { weights, states, shapes: &shapes, is_encoder, features_width };
        let op = op.definition();
        let place = |message: &str| invalid(format!("{name}, operation {number}: {message}"));
        let shape = op.shape(&scope).map_err(|finding| place(&finding.message))?;
        width += u64::from(shape.width);
        if width > limits.width {
            return Err(limit(format!("{name}: values have more than {} elements", limits.width)));
        }
        for write in op.writes() {
            let StateWrite { state, key_value } = write;
            let other = writes.get_mut(state.0 as usize).map(|of_state| of_state.replace(write));
            let is_only = other.is_some_and(|other| {
                other.is_none_or(|other| key_value.is_some() && other == write)
            });
            if !is_only {
                return Err(place(&format!("another operation writes state {} too", state.0)));
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

fn limit(message: String) -> Finding {
    Finding::error("graph-limit", message)
        .help("no known model is so large; the graph may come from an attacker")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the error of a graph with these states and programs.
    fn error(states: Value, encoder: Value, main: Value) -> String {
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
        let main = json!([{"op": "embedding", "table": 0, "index": "token"}]);
        let frames = json!({"op": "features", "width": 4});
        let tokens = json!({"op": "embedding", "table": 0, "index": "token"});
        let both = json!([tokens, frames]);
        let message = error(json!([]), both, main.clone());
        assert_eq!(message, "encoder, operation 0: an encoder of frames has no tokens");
        let two = json!([frames, {"op": "features", "width": 5}]);
        let message = error(json!([]), two, main);
        assert_eq!(message, "encoder, operation 1: the width of the features is 5; expected 4");
    }

    #[test]
    fn an_encoder_of_token_features_stores_keys_and_values() {
        let store = json!({"op": "kv_store", "key": 0, "value": 0, "state": 0});
        let states = json!([{"kind": "kv_cache", "key_width": 4, "value_width": 4}]);
        let tokens = json!({"op": "embedding", "table": 0, "index": "token"});
        let message = error(states.clone(), json!([tokens, store]), json!([tokens]));
        assert_eq!(
            message,
            "the encoder stores keys and values in a KV cache, but reads no features of tokens"
        );
        let features = json!({"op": "token_features", "width": 4});
        let message = error(states, json!([features, store, store]), json!([tokens]));
        assert_eq!(message, "encoder, operation 2: another operation writes state 0 too");
    }

    #[test]
    fn all_operations_read_a_state_with_the_same_heads() {
        let attention = |heads: u32, len: u32| {
            json!({"op": "attention", "query": 0, "kv": {"encoder": {"state": 0}},
                "heads": heads, "heads_kv": heads, "key_len": len, "value_len": len,
                "scale": 1.0, "mask": "full"})
        };
        let embedding = json!({"op": "embedding", "table": 0, "index": "token"});
        let main = json!([embedding, attention(2, 2), attention(4, 1)]);
        let states = json!([{"kind": "encoder_kv", "key_width": 4, "value_width": 4}]);
        let message = error(states, json!([{"op": "features", "width": 4}]), main);
        assert_eq!(message, "operations read state 0 with different `heads_kv`");
    }
}
