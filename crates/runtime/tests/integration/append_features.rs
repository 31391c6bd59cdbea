//! Tokens of which only features are known: the encoder stores their keys and values.

use std::sync::Arc;

use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, Value};
use serde_json::json;

use crate::tiny;

const TOKENS: usize = 7;
const WIDTH: usize = 4;

/// Returns the row of a token: pseudo-random numbers between -2 and 2 that are exact in FP32.
fn row(id: u32) -> impl Iterator<Item = f32> {
    (0..WIDTH as u32).map(move |i| ((id * 29 + i * 37 + 11) % 64) as f32 / 16.0 - 2.0)
}

/// Returns a context of a model whose tokens attend by a mask, with batches of three tokens. Keys and values are the
/// embeddings of tokens, or their features.
fn context(mask: &serde_json::Value) -> Context {
    let attention = json!({
        "op": "attention", "query": 1, "kv": {"cached": {"key": 1, "value": 0, "state": 0}}, "heads": 1,
        "heads_kv": 1, "key_len": WIDTH, "value_len": WIDTH, "scale": 1.0, "mask": mask,
    });
    let parameters = json!({"layout": "neox", "dimensions": WIDTH, "freq_base": 100.0});
    let rope = json!({"op": "rope", "x": 0, "heads": 1, "parameters": parameters});
    let raw = json!({
        "architecture": "x", "weights": [{"name": "x", "shape": [WIDTH, TOKENS]}],
        "states": [{"kind": "kv_cache", "key_width": WIDTH, "value_width": WIDTH}],
        "encoder": {"ops": [{"op": "token_features", "width": WIDTH}, rope, {"op": "kv_store", "key": 1, "value": 0, "state": 0}],
            "outputs": []},
        "main": {"ops": [{"op": "embedding", "table": 0, "index": "token"}, rope, attention],
            "outputs": [{"kind": "hidden", "value": 2}]},
    });
    let graph = Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let bytes = (0..TOKENS as u32).flat_map(row).flat_map(f32::to_le_bytes).collect();
    let executor = Executor::new(&model, graph, Precision::Exact).unwrap();
    let executor = executor.with_tensor("x", gguf::TensorType::F32, bytes).unwrap();
    let options =
        ContextOptions { tokens: TOKENS, cache_type: CacheType::F32, batch: 3, sequences: 2 };
    Context::new(Arc::new(executor), options).unwrap()
}

fn features(ids: &[u32]) -> Value {
    Value { rows: ids.len(), width: WIDTH, data: ids.iter().copied().flat_map(row).collect() }
}

fn run(context: &mut Context, ids: &[u32]) -> Value {
    context.run(&Batch::for_sequence(ids, 1), OutputKind::Hidden, &()).unwrap()
}

#[test]
fn features_have_the_keys_and_values_of_tokens() {
    let (before, block) = ([4, 1, 3, 0], [2, 5, 2]);
    for mask in [json!("full"), json!("causal"), json!({"lookahead_window": 3})] {
        let mut of_tokens = context(&mask);
        run(&mut of_tokens, &before);
        let mut of_features = context(&mask);
        of_features.append_features(1, &features(&before), &()).unwrap();
        assert_eq!(of_features.len(1), 4);
        let expected = run(&mut of_tokens, &block);
        assert_eq!(run(&mut of_features, &block), expected, "{mask}");
        // The block is removed, and the next tokens follow the features.
        assert!(of_features.truncate(1, 4));
        assert_eq!(run(&mut of_features, &block), expected, "{mask}");
    }
}

/// A token of a block attends to those after it, even if the block is larger than a batch.
#[test]
fn blocks_are_not_split() {
    let block = [2, 5, 3, 1];
    let first = |mask| run(&mut context(&mask), &block).row(0).to_vec();
    let [full, causal] = ["full", "causal"].map(|mask| first(json!(mask)));
    assert_ne!(full, causal);
    assert_eq!(first(json!({"lookahead_window": 1})), full);
}

#[test]
fn features_of_another_width_are_refused() {
    let mut context = context(&json!("full"));
    let mut code = |value: &Value| context.append_features(1, value, &()).unwrap_err();
    assert_eq!(code(&Value { rows: 1, width: 3, data: vec![0.0; 3] }).code(), "features-missing");
    assert_eq!(code(&features(&[0; TOKENS + 1])).code(), "context-full");
    assert_eq!(context.len(1), 0);
    let error = context.encode_tokens(1, &[1, 2], &()).unwrap_err();
    assert_eq!(error.code(), "features-missing");
}
