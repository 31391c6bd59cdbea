//! Block-sparse attention, with and without the incomplete block of a token.

use std::sync::Arc;

use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, Value};
use serde_json::{Value as Json, json};

use crate::tiny;

const TOKENS: usize = 11;
const WIDTH: usize = 3;
const BLOCK: usize = 4;

/// Returns rows of tokens: pseudo-random numbers between -2 and 2 that are exact in FP32.
fn table() -> Vec<f32> {
    (0..TOKENS * WIDTH).map(|i| ((i * i * 7 + i * 37 + 11) % 64) as f32 / 16.0 - 2.0).collect()
}

/// Returns the value of the last operation, for all tokens in batches of a size.
fn run(ops: &[Json], batch: usize) -> Value {
    let raw = json!({
        "architecture": "x", "weights": [{"name": "x", "shape": [WIDTH, TOKENS]}],
        "states": [{"kind": "kv_cache", "key_width": WIDTH, "value_width": 0, "block": BLOCK},
            {"kind": "kv_cache", "key_width": WIDTH, "value_width": WIDTH}],
        "main": {"ops": ops, "outputs": [{"kind": "hidden", "value": ops.len() - 1}]},
    });
    let graph = Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let bytes = table().iter().flat_map(|x| x.to_le_bytes()).collect();
    let executor = Executor::new(&model, graph, Precision::Exact).unwrap();
    let executor = executor.with_tensor("x", gguf::TensorType::F32, bytes).unwrap();
    let options =
        ContextOptions { tokens: TOKENS, cache_type: CacheType::F32, batch, ..Default::default() };
    let mut context = Context::new(Arc::new(executor), options).unwrap();
    let ids: Vec<u32> = (0..TOKENS as u32).collect();
    context.run(&Batch::all_outputs(&ids), OutputKind::Hidden, &()).unwrap()
}

/// Returns the expected attention of a token to others; 0 if there are none.
fn attended(row: usize, seen: &[usize]) -> [f64; WIDTH] {
    let x = table();
    let of = |row: usize| -> [f64; WIDTH] { std::array::from_fn(|i| x[row * WIDTH + i].into()) };
    let share = |j: usize| of(row).iter().zip(of(j)).map(|(q, k)| q * k).sum::<f64>().exp();
    let all: f64 = seen.iter().map(|j| share(*j)).sum();
    let column = |i| seen.iter().map(|j| share(*j) / all * of(*j)[i]).sum();
    std::array::from_fn(column)
}

#[test]
fn the_incomplete_block_of_a_token_is_included() {
    let embed = json!({"op": "embedding", "table": 0, "index": "token"});
    let choose =
        json!({"op": "topk_indexer", "query": 0, "key": 0, "heads": 1, "top_k": 1, "state": 0});
    for tail in [true, false] {
        let attention = json!({
            "op": "attention", "query": 0, "kv": {"cached": {"key": 0, "value": 0, "state": 1}},
            "heads": 1, "heads_kv": 1, "key_len": WIDTH, "value_len": WIDTH, "scale": 1.0,
            "mask": "causal", "selection": {"indices": 1, "block": BLOCK, "include_tail": tail},
        });
        let ops = [embed.clone(), choose.clone(), attention];
        let chosen = run(&ops[..2], 512).data;
        assert!(chosen.contains(&0.0) && chosen.contains(&1.0), "{chosen:?}");
        for batch in [512, 3, 1] {
            let made = run(&ops, batch);
            for (row, chosen) in chosen.iter().enumerate() {
                let is_open = (row + 1) % BLOCK > 0;
                let sees = |j: usize| {
                    let block = j / BLOCK;
                    block as f32 == *chosen || tail && is_open && block == row / BLOCK
                };
                let seen: Vec<usize> = (0..=row).filter(|j| sees(*j)).collect();
                for (found, expected) in made.row(row).iter().zip(attended(row, &seen)) {
                    // Weights and sums are in single precision, numbers below 2.
                    let error = (f64::from(*found) - expected).abs();
                    assert!(error < 1e-5, "tail: {tail}, row {row}: {found}, {expected}");
                }
            }
        }
    }
}
