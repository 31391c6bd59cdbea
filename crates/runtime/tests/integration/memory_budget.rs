//! Stored graphs that ask for more memory than the budget has: nothing is allocated.

use std::sync::Arc;

use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Batch, Context, ContextOptions, Executor, MemoryBudget, Precision};
use serde_json::{Value as Json, json};

use crate::tiny;

const MB: u64 = 1_000_000;

/// Returns a graph of an embedding of width 2 and more operations.
fn graph(states: Json, more: &[Json]) -> Graph {
    let embedding = json!({"op": "embedding", "table": 0, "index": "token"});
    let ops: Vec<Json> = std::iter::once(embedding).chain(more.iter().cloned()).collect();
    let raw = json!({"architecture": "x", "states": states,
        "weights": [{"name": "table", "shape": [2, 9]}],
        "main": {"outputs": [{"kind": "hidden", "value": ops.len() - 1}], "ops": ops}});
    Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap()
}

fn executor(graph: Graph, limit: u64) -> Arc<Executor> {
    let model = tiny::model(&graph).unwrap();
    let budget = MemoryBudget::new(limit);
    Arc::new(Executor::within(&model, graph, Precision::Exact, budget).unwrap())
}

fn refusal<T>(result: Result<T, gguf::Error>) -> String {
    let error = result.err().expect("the budget is too small").to_string();
    assert!(error.contains("or allow more memory with `--memory-limit SIZE`"), "{error}");
    error
}

#[test]
fn states_count_before_they_are_allocated() {
    let states = [
        json!({"kind": "row_history", "width": 1 << 24, "len": u32::MAX}),
        json!({"kind": "recurrent", "len": u32::MAX}),
        json!({"kind": "token_history", "len": u32::MAX}),
        json!({"kind": "kv_cache", "key_width": 1 << 24, "value_width": 1 << 24}),
    ];
    for state in states {
        let executor = executor(graph(json!([state]), &[]), 100 * MB);
        let error = refusal(Context::new(executor.clone(), ContextOptions::default()));
        assert!(error.starts_with("caches and states of 1 sequences of 4096 tokens"), "{error}");
        assert!(error.contains("; 100.0 MB are allowed"), "{error}");
        assert_eq!(executor.memory().used(), 0);
    }
}

#[test]
fn lists_of_states_count() {
    let state = json!({"kind": "kv_cache", "key_width": 1, "value_width": 1});
    let options = ContextOptions { tokens: 0, ..Default::default() };
    let many = executor(graph(json!(vec![state; 900_000]), &[]), 100 * MB);
    refusal(Context::new(many, options));
}

#[test]
fn values_that_live_together_count() {
    // 2^24 elements per token, twice at a time.
    let wider = |x: u32| json!({"op": "concat", "a": x, "b": x});
    let wide: Vec<Json> = (0..23).map(wider).collect();
    let executor = executor(graph(json!([]), &wide), 1000 * MB);
    let mut context = Context::new(executor.clone(), ContextOptions::default()).unwrap();
    let run = |context: &mut Context, ids: &[u32]| {
        context.run(&Batch::last_output(ids, 0), OutputKind::Hidden, &())
    };
    assert_eq!(run(&mut context, &[1]).unwrap().width, 1 << 24);
    let error = refusal(run(&mut context, &[1; 6]));
    assert!(error.contains("the values of a batch need"), "{error}");
    drop(context);
    assert_eq!(executor.memory().used(), 0);
}

#[test]
fn outputs_of_all_batches_count() {
    let executor = executor(graph(json!([]), &[]), MB);
    let options = ContextOptions { tokens: 1 << 20, batch: 32, ..Default::default() };
    let mut context = Context::new(executor, options).unwrap();
    let error =
        refusal(context.run(&Batch::all_outputs(&vec![1; 1 << 20]), OutputKind::Hidden, &()));
    assert!(error.starts_with("the outputs of 1048576 tokens need 8.39 MB"), "{error}");
    let few = context.run(&Batch::all_outputs(&[1; 1000]), OutputKind::Hidden, &()).unwrap();
    assert_eq!((few.rows, few.data.capacity()), (1000, 2000));
}

#[test]
fn outputs_with_nan_are_refused() {
    let executor = executor(graph(json!([]), &[]), MB);
    for (number, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "infinity")] {
        let numbers = [1.0, 2.0, 3.0, number, f32::NEG_INFINITY, 0.0];
        let table: Vec<u8> =
            numbers.iter().chain(&[0.0; 12]).flat_map(|x| x.to_le_bytes()).collect();
        let executor = executor.with_tensor("table", gguf::TensorType::F32, table.into()).unwrap();
        let mut context = Context::new(Arc::new(executor), ContextOptions::default()).unwrap();
        let mut run =
            |ids: &[u32]| context.run_finite(&Batch::all_outputs(ids), OutputKind::Hidden, &());
        let error = run(&[0, 2, 1]).unwrap_err().to_string();
        assert!(error.contains(&format!("contains {word}, first in row 2")), "{error}");
        assert!(run(&[0, 2]).is_ok());
    }
}
