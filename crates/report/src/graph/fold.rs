//! Folds equal layers of a program.

use std::ops::Range;

use gguf_graph::{Graph, Op, Program, Shape};
use serde_json::Value as Json;

/// A drawn operation.
pub struct Row {
    /// Number of the operation.
    pub op: usize,
    /// Rows that it reads.
    pub inputs: Vec<usize>,
    /// Layers that it stands for; `None` for an operation that is drawn alone.
    pub repeated: Option<Range<u64>>,
}

/// Consecutive operations of a layer.
struct Layer {
    number: Option<u64>,
    ops: Range<usize>,
}

/// Returns the rows of a program.
pub fn rows(graph: &Graph, program: &Program, shapes: &[Shape]) -> Vec<Row> {
    let layers = layers(graph, program);
    let mut rows: Vec<Row> = Vec::new();
    // Row of each operation.
    let mut places = Vec::with_capacity(program.ops.len());
    let mut next = 0;
    while let Some(first) = layers.get(next) {
        let equal = |layer: &&Layer| is_equal(program, shapes, first, layer);
        let count = 1 + layers[next + 1..].iter().take_while(equal).count();
        let start = rows.len();
        let repeated = first.number.filter(|_| count > 1);
        for op in first.ops.clone() {
            places.push(rows.len());
            let mut inputs: Vec<usize> =
                program.ops[op].inputs().iter().map(|value| places[value.0 as usize]).collect();
            inputs.sort_unstable();
            inputs.dedup();
            let repeated = repeated.map(|number| number..number + count as u64);
            rows.push(Row { op, inputs, repeated });
        }
        for layer in &layers[next + 1..next + count] {
            places.extend((start..).take(layer.ops.len()));
        }
        next += count;
    }
    rows
}

/// Divides a program into layers. An operation without weights belongs to the layer before it.
fn layers(graph: &Graph, program: &Program) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    for (number, op) in program.ops.iter().enumerate() {
        let layer = layer_of(graph, op);
        match layers.last_mut() {
            Some(last) if layer.is_none() || layer == Some(last.number) => {
                last.ops.end = number + 1
            }
            _ => layers.push(Layer { number: layer.flatten(), ops: number..number + 1 }),
        }
    }
    layers
}

/// Returns the layer of the last weight of an operation; `None` without weights, `Some(None)` for a weight outside of
/// layers.
fn layer_of(graph: &Graph, op: &Op) -> Option<Option<u64>> {
    let weight = *op.weights().last()?;
    let name = graph.raw().weights.get(weight.0 as usize)?.name.strip_prefix("blk.");
    Some(name.and_then(|rest| rest.split('.').next()?.parse().ok()))
}

/// Whether two layers have the same operations with the same fields; the numbers of values, weights and states grow from
/// one to the other.
fn is_equal(program: &Program, shapes: &[Shape], first: &Layer, other: &Layer) -> bool {
    let (Some(a), Some(b)) = (first.number, other.number) else { return false };
    let follows = b > a && other.ops.len() == first.ops.len();
    follows
        && first.ops.clone().zip(other.ops.clone()).all(|(a, b)| {
            let (x, y) = (&program.ops[a], &program.ops[b]);
            shapes[a] == shapes[b] && x.name() == y.name() && has_equal_fields((x, a), (y, b))
        })
}

fn has_equal_fields((a, a_number): (&Op, usize), (b, b_number): (&Op, usize)) -> bool {
    let distance = (b_number - a_number) as u64;
    let ids = |op: &Op| {
        let values = op.inputs().into_iter().map(|id| id.0);
        let weights = op.weights().into_iter().map(|id| id.0);
        let states = op.states().into_iter().map(|id| id.0);
        values.chain(weights).chain(states).map(u64::from).collect::<Vec<_>>()
    };
    let (a_ids, b_ids) = (ids(a), ids(b));
    let inputs = a.inputs().len();
    let reads_alike = a_ids.len() == b_ids.len()
        && a_ids.iter().zip(&b_ids).take(inputs).all(|(x, y)| x == y || x + distance == *y);
    let fields = |op: &Op| serde_json::to_value(op).unwrap_or_default();
    reads_alike && is_equal_but_for(&fields(a), &fields(b), &a_ids, &b_ids)
}

/// Whether two JSON values are equal, except for numbers that are ids of the one and of the other.
fn is_equal_but_for(a: &Json, b: &Json, a_ids: &[u64], b_ids: &[u64]) -> bool {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((key, a), (other, b))| {
                    key == other && is_equal_but_for(a, b, a_ids, b_ids)
                })
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal_but_for(a, b, a_ids, b_ids))
        }
        (Json::Number(x), Json::Number(y)) => {
            let is_id = || {
                let (Some(x), Some(y)) = (x.as_u64(), y.as_u64()) else { return false };
                a_ids.iter().zip(b_ids).any(|pair| pair == (&x, &y))
            };
            x == y || is_id()
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::graph;
    use super::*;

    #[test]
    fn layers_with_other_fields_are_drawn() {
        let weight =
            |layer: usize| json!({"name": format!("blk.{layer}.x.weight"), "shape": [4, 4]});
        let mut weights = vec![json!({"name": "table", "shape": [4, 9]})];
        weights.extend((0..4).map(weight));
        let mut ops = vec![json!({"op": "embedding", "table": 0, "index": "token"})];
        for layer in 0..4 {
            let factor = if layer == 2 { 3.0 } else { 2.0 };
            ops.push(json!({"op": "matmul", "x": 2 * layer, "weight": layer + 1}));
            ops.push(json!({"op": "scale", "x": 2 * layer + 1, "factor": factor}));
        }
        let graph = graph(weights, ops);
        let (program, shapes) = graph.main();
        let rows = rows(&graph, program, shapes);
        let found: Vec<_> = rows.iter().map(|row| (row.op, row.repeated.clone())).collect();
        let (twice, once) = (Some(0..2), None);
        assert_eq!(
            found,
            [
                (0, None),
                (1, twice.clone()),
                (2, twice),
                (5, once.clone()),
                (6, once.clone()),
                (7, once.clone()),
                (8, once)
            ]
        );
        // The third layer reads the second one, which is drawn as the first.
        assert_eq!(rows[3].inputs, [2]);
    }
}
