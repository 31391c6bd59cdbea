//! Constants by token id, matrices selected by numbers, and mapped tokens.

use std::sync::Arc;

use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Batch, Context, ContextOptions, Executor, Precision, Value};
use serde_json::{Value as Json, json};

use crate::tiny;

/// Returns tables in which token `i` has the row `i, 1` and matrix `n` maps it to `n i + 10 n`.
fn tables() -> [(&'static str, Vec<u64>, Vec<f32>); 2] {
    let rows = (0..9).flat_map(|i| [i as f32, 1.0]).collect();
    let matrices = (0..4).flat_map(|n| [n as f32, 10.0 * n as f32]).collect();
    [("table", vec![2, 9], rows), ("matrices", vec![2, 1, 4], matrices)]
}

/// Returns the value of the last operation for tokens.
fn run(ops: &[Json], states: Json, ids: &[u32]) -> Value {
    let weights = tables().map(|(name, shape, _)| json!({"name": name, "shape": shape}));
    let raw = json!({"architecture": "x", "weights": weights, "states": states,
        "main": {"ops": ops, "outputs": [{"kind": "hidden", "value": ops.len() - 1}]}});
    let graph = Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let mut executor = Executor::new(&model, graph, Precision::Exact).unwrap();
    assert_eq!(executor.vocabulary_len(), Some(9));
    for (name, _, numbers) in tables() {
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        executor = executor.with_tensor(name, gguf::TensorType::F32, bytes).unwrap();
    }
    let mut context = Context::new(Arc::new(executor), ContextOptions::default()).unwrap();
    context.run(&Batch::all_outputs(ids), OutputKind::Hidden, &()).unwrap()
}

fn replaced() -> Json {
    json!({"op": "embedding", "table": 0, "index": {"mapped_token": [[3, 5], [7, 0]]}})
}

#[test]
fn mapped_tokens_use_other_rows() {
    let made = run(&[replaced()], json!([]), &[1, 3, 5, 7, 8]);
    assert_eq!(made.data, [1.0, 1.0, 5.0, 1.0, 5.0, 1.0, 0.0, 1.0, 8.0, 1.0]);
}

#[test]
fn ids_select_matrices() {
    // Of four matrices, the numbers 0.5, 1, 2.4, -3 and 99 select 1, 1, 2, 0 and 3.
    let marks = json!({"op": "token_constant", "values": [[1, 1.0], [2, 2.4], [3, -3.0], [8, 99.0]], "default": 0.5});
    let product = json!({"op": "matmul_id", "x": 0, "ids": 1, "weight": 1});
    let made = run(&[replaced(), marks, product], json!([]), &[0, 1, 2, 3, 4, 8]);
    assert_eq!(made.data, [10.0, 11.0, 24.0, 0.0, 14.0, 54.0]);
}

#[test]
fn attention_reads_constants_of_earlier_tokens() {
    let mark = |marks: Json, otherwise: f32| json!({"op": "token_constant", "values": marks, "default": otherwise});
    let ops = [
        replaced(),
        mark(json!([]), 1.0),
        mark(json!([[3, 12.5], [7, 12.5]]), -12.5),
        mark(json!([[3, 1.0], [7, 3.0]]), 0.0),
        json!({"op": "attention", "query": 1, "kv": {"cached": {"key": 2, "value": 3, "state": 0}},
               "heads": 1, "heads_kv": 1, "key_len": 1, "value_len": 1, "scale": 1.0, "mask": "causal"}),
        json!({"op": "matmul_id", "x": 0, "ids": 4, "weight": 1}),
    ];
    let states = json!([{"kind": "kv_cache", "key_width": 1, "value_width": 1}]);
    // Before the first such token the result is 0, then its number, then the mean of two, then that of three.
    let numbers = run(&ops[..5], states.clone(), &[1, 3, 1, 7, 1, 7]);
    for (found, expected) in numbers.data.iter().zip([0.0, 1.0, 1.0, 2.0, 2.0, 7.0 / 3.0]) {
        assert!((found - expected).abs() < 1e-5, "{found} and {expected}");
    }
    let made = run(&ops, states, &[1, 3, 1, 7, 1, 7]);
    assert_eq!(made.data, [0.0, 15.0, 11.0, 20.0, 22.0, 20.0]);
}
