//! Operations with a history of tokens: n-gram embeddings, dilated convolutions, keys of blocks.

use std::sync::Arc;

use gguf::TensorType;
use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, Token};
use serde_json::{Value as Json, json};

use crate::tiny;

/// Token ids; some of them end a text.
const IDS: [u32; 13] = [3, 1, 5, 4, 1, 5, 5, 2, 6, 7, 0, 3, 1];
const END: u32 = 5;

/// Returns the value of the last operation for all tokens, and checks that it is bit-exact token by token and
/// next to another sequence. `weights` are names, shapes and data.
fn made(states: Json, mut ops: Json, weights: &[(&str, [u64; 2], Vec<f32>)]) -> Vec<Vec<f32>> {
    let names: Vec<_> =
        weights.iter().map(|(name, shape, _)| json!({"name": name, "shape": shape})).collect();
    let ops = ops.as_array_mut().unwrap();
    let last = ops.len();
    ops.push(json!({"op": "select_outputs", "x": last - 1}));
    let graph = json!({
        "architecture": "x", "weights": names, "states": states,
        "main": {"outputs": [{"kind": "hidden", "value": last}], "ops": ops},
    });
    let raw = serde_json::from_value(graph).unwrap();
    let graph = Graph::new(raw, Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let mut executor = Executor::new(&model, graph, Precision::Exact).unwrap();
    for (name, _, numbers) in weights {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        executor = executor.with_tensor(name, TensorType::F32, bytes).unwrap();
    }
    let executor = Arc::new(executor);
    let options = ContextOptions {
        tokens: 16,
        sequences: 2,
        cache_type: CacheType::F32,
        ..ContextOptions::default()
    };
    let run = |context: &mut Context, tokens: &[Token]| {
        let batch = Batch { tokens: tokens.to_vec() };
        context.run(&batch, OutputKind::Hidden, &()).unwrap()
    };
    let context = || Context::new(executor.clone(), options).unwrap();
    let token =
        |sequence: usize| move |id: &u32| Token { id: *id, sequence, output: sequence == 0 };
    let ours: Vec<Token> = IDS.iter().map(token(0)).collect();
    let all = run(&mut context(), &ours);
    let mut one = context();
    let steps = ours.chunks(1).flat_map(|tokens| run(&mut one, tokens).data);
    assert!(steps.collect::<Vec<f32>>() == all.data, "token by token");
    // With another sequence that begins two tokens later.
    let others = IDS.iter().rev().map(token(1));
    let mixed = ours[2..].iter().copied().zip(others).flat_map(|(one, other)| [other, one]);
    let mixed: Vec<Token> = ours[..2].iter().copied().chain(mixed).collect();
    let mut two = context();
    let steps = mixed.chunks(5).flat_map(|tokens| run(&mut two, tokens).data);
    assert!(steps.collect::<Vec<f32>>() == all.data, "beside another sequence");
    one.clear(0);
    assert!(run(&mut one, &ours) == all, "after another text");
    all.data.chunks_exact(all.width).map(<[f32]>::to_vec).collect()
}

fn embed() -> Json {
    json!({"op": "embedding", "table": 0, "index": "token"})
}

#[test]
fn ngram_hashes_stay_within_a_text() {
    // Large multipliers, whose products overflow.
    let multipliers = [u64::MAX - 12, (1 << 63) + 977, 0x9e37_79b9_7f4a_7c15];
    let heads = [(0u64, 11u64), (11, 13), (24, 17), (41, 19)];
    let rows: Vec<f32> = (0..60).flat_map(|row| [row as f32, -(row as f32)]).collect();
    let listed: Vec<_> =
        heads.iter().map(|(start, count)| json!({"offset": start, "size": count})).collect();
    let found = made(
        json!([{"kind": "token_history", "len": 2}]),
        json!([{"op": "ngram_embedding", "table": 0, "multipliers": multipliers, "heads": listed,
                "end_token": END, "state": 0}]),
        &[("rows", [2, 60], rows)],
    );
    for (at, found) in found.iter().enumerate() {
        let start = IDS[..at].iter().rposition(|id| *id == END).map_or(0, |end| end + 1);
        let id = |back: usize| if at >= start + back { IDS[at - back] } else { END };
        let wanted = heads.iter().enumerate().flat_map(|(head, (start, count))| {
            let hash = (0..2 + head / 2).fold(0u64, |hash, back| {
                let product = u128::from(id(back)) * u128::from(multipliers[back]);
                hash ^ (product % (1 << 64)) as u64
            });
            let row = (start + hash % count) as f32;
            [row, -row]
        });
        assert_eq!(*found, wanted.collect::<Vec<_>>(), "token {at}");
    }
}

/// Returns a table with two numbers per token.
fn table() -> Vec<f32> {
    (0..16).map(|i| ((i * 7) % 16) as f32 / 4.0 - 2.0).collect()
}

#[test]
fn causal_convolutions_may_be_dilated() {
    let kernels = vec![1.0, 2.0, 4.0, -1.0, 0.5, 8.0];
    let found = made(
        json!([{"kind": "row_history", "width": 2, "len": 6}]),
        json!([embed(), {"op": "causal_conv1d", "x": 0, "weight": 1, "dilation": 3, "state": 0}]),
        &[("table", [2, 8], table()), ("kernels", [3, 2], kernels.clone())],
    );
    let number = |at: usize, column: usize| table()[IDS[at] as usize * 2 + column];
    for (at, found) in found.iter().enumerate() {
        let wanted = [0, 1].map(|column| {
            let of = |i: usize| {
                let before = at.checked_sub((2 - i) * 3);
                before.map_or(0.0, |before| kernels[column * 3 + i] * number(before, column))
            };
            (0..3).map(of).sum::<f32>()
        });
        assert_eq!(*found, wanted, "token {at}");
    }
}

#[test]
fn the_indexer_uses_keys_of_blocks() {
    const BLOCK: usize = 4;
    const COUNT: usize = 2;
    let found = made(
        json!([{"kind": "row_history", "width": 4, "len": BLOCK},
               {"kind": "kv_cache", "key_width": 2, "value_width": 0, "block": BLOCK}]),
        json!([embed(),
               {"op": "block_compress", "x": 0, "block": BLOCK, "state": 0},
               {"op": "concat", "a": 0, "b": 0, "groups": 1},
               {"op": "topk_indexer", "query": 2, "key": 1, "heads": 2, "sum_heads": true, "top_k": COUNT,
                "state": 1}]),
        &[("table", [2, 8], table())],
    );
    let row = |at: usize| [0, 1].map(|column| table()[IDS[at] as usize * 2 + column]);
    for (at, found) in found.iter().enumerate() {
        let score = |block: usize| -> f32 {
            let rows = (block * BLOCK..(block + 1) * BLOCK).map(row);
            let key = rows.fold([0.0; 2], |sum, row| [sum[0] + row[0], sum[1] + row[1]]);
            let product: f32 = row(at).iter().zip(key).map(|(q, k)| q * (k / BLOCK as f32)).sum();
            // Both heads are equal.
            2.0 * product.max(0.0)
        };
        let mut blocks: Vec<usize> = (0..(at + 1) / BLOCK).collect();
        blocks.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        let mut wanted: Vec<f32> = blocks.iter().take(COUNT).map(|block| *block as f32).collect();
        wanted.resize(COUNT, -1.0);
        assert_eq!(*found, wanted, "token {at}");
    }
}
