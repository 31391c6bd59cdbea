//! Linear attention and the gated delta rule, compared with the formula and with `transformers` 5.24
//! (`torch_recurrent_gated_delta_rule` of Qwen 3 Next, `recurrent_kimi_delta_attention` of Kimi Linear).

use std::sync::Arc;

use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Batch, Context, ContextOptions, Executor, Precision, Value};
use serde_json::{Value as Json, json};

use crate::tiny;

const TOKENS: usize = 12;
const HEADS: usize = 2;
const KEY: usize = 5;
/// The kernel computes 32, 8 and 1 columns of the state at a time.
const VALUE: usize = 41;

/// Returns pseudo-random numbers between -1 and 1 that are exact in FP32.
fn number(seed: usize, i: usize) -> f32 {
    ((i * i * 7 + i * 37 + seed * 11) % 64) as f32 / 32.0 - 1.0
}

/// Returns width and data of a table: queries, keys, values, update rates, or decays per head or per key
/// element.
fn table(name: &str) -> (usize, Vec<f32>) {
    let decay = |x: f32| 1.0 - x.abs() / 4.0;
    let (width, seed, of): (_, _, fn(f32) -> f32) = match name {
        "query" => (HEADS * KEY, 1, |x| x),
        "key" => (HEADS * KEY, 2, |x| x),
        "value" => (HEADS * VALUE, 3, |x| x),
        "rate" => (HEADS, 4, |x| x / 2.0 + 0.5),
        "by_head" => (HEADS, 5, decay),
        _ => (HEADS * KEY, 6, decay),
    };
    (width, (0..TOKENS * width).map(|i| of(number(seed, i))).collect())
}

const TABLES: [&str; 6] = ["query", "key", "value", "rate", "by_head", "by_number"];

/// Returns the output of the operation for tokens that look up the tables.
fn computed(decay: &Json, has_beta: bool) -> Value {
    let weights = TABLES.map(|name| json!({"name": name, "shape": [table(name).0, TOKENS]}));
    let embed = |table: usize| json!({"op": "embedding", "table": table, "index": "token"});
    let mut ops: Vec<Json> = (0..TABLES.len()).map(embed).collect();
    let mut attention = json!({"op": "linear_attention", "query": 0, "key": 1, "value": 2,
        "heads": HEADS, "decay": decay, "state": 0});
    if has_beta {
        attention["beta"] = 3.into();
    }
    ops.push(attention);
    let raw = json!({"architecture": "x", "weights": weights,
        "states": [{"kind": "recurrent", "len": HEADS * KEY * VALUE}],
        "main": {"ops": ops, "outputs": [{"kind": "hidden", "value": TABLES.len()}]}});
    let graph = Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let mut executor = Executor::new(&model, graph, Precision::Exact).unwrap();
    for name in TABLES {
        let bytes = table(name).1.iter().flat_map(|x| x.to_le_bytes()).collect();
        executor = executor.with_tensor(name, gguf::TensorType::F32, bytes).unwrap();
    }
    let mut context = Context::new(Arc::new(executor), ContextOptions::default()).unwrap();
    let ids: Vec<u32> = (0..TOKENS as u32).collect();
    context.run(&Batch::all_outputs(&ids), OutputKind::Hidden, &()).unwrap()
}

/// Returns the output by the formula in double precision.
fn expected(decay: impl Fn(usize, usize, usize) -> f64, has_beta: bool) -> Vec<f64> {
    let row = |name: &str, token: usize, at: usize| {
        let (width, numbers) = table(name);
        f64::from(numbers[token * width + at])
    };
    let mut made = vec![0.0; TOKENS * HEADS * VALUE];
    for head in 0..HEADS {
        let mut state = [[0.0f64; VALUE]; KEY];
        for token in 0..TOKENS {
            let key = |i: usize| row("key", token, head * KEY + i);
            for (i, of_row) in state.iter_mut().enumerate() {
                of_row.iter_mut().for_each(|s| *s *= decay(token, head, i));
            }
            for j in 0..VALUE {
                let mut added = row("value", token, head * VALUE + j);
                if has_beta {
                    let known: f64 = (0..KEY).map(|i| key(i) * state[i][j]).sum();
                    added = row("rate", token, head) * (added - known);
                }
                let mut sum = 0.0;
                for (i, of_row) in state.iter_mut().enumerate() {
                    of_row[j] += key(i) * added;
                    sum += row("query", token, head * KEY + i) * of_row[j];
                }
                made[(token * HEADS + head) * VALUE + j] = sum;
            }
        }
    }
    made
}

#[test]
fn linear_attention_matches_the_formula() {
    let by_head = table("by_head").1;
    let by_number = table("by_number").1;
    let of_head = |token: usize, head: usize, _: usize| f64::from(by_head[token * HEADS + head]);
    let of_number = |token: usize, head: usize, i: usize| {
        f64::from(by_number[(token * HEADS + head) * KEY + i])
    };
    // Two heads have the slopes 2^-4 and 2^-8.
    let slopes = |_: usize, head: usize, _: usize| (-0.5 * (-4.0 * (head + 1) as f64).exp2()).exp();
    for has_beta in [true, false] {
        let cases = [
            (json!({"value": 4}), expected(of_head, has_beta)),
            (json!({"value": 5}), expected(of_number, has_beta)),
            (json!({"alibi_slopes": {"max_bias": 8.0, "factor": 0.5}}), expected(slopes, has_beta)),
        ];
        for (decay, expected) in cases {
            let found = computed(&decay, has_beta);
            assert_eq!(found.data.len(), expected.len());
            for (at, (found, expected)) in found.data.iter().zip(&expected).enumerate() {
                // Without an update rate numbers grow to about 10; sums are in single precision.
                let error = (f64::from(*found) - expected).abs();
                assert!(error < 1e-5, "{decay}, rate: {has_beta}, {at}: {found} and {expected}");
            }
        }
    }
}

#[test]
fn the_delta_rule_matches_transformers() {
    const PLACES: [(usize, usize); 6] = [(3, 0), (7, 40), (11, 5), (11, 41), (11, 60), (11, 81)];
    let cases = [
        (4, [0.142_252, 0.269_8, 0.085_964, 0.462_541, 0.193_809, -0.446_551]),
        (5, [0.174_634, 0.131_46, 0.124_802, 0.422_136, 0.089_267, -0.496_63]),
    ];
    for (decay, expected) in cases {
        let made = computed(&json!({ "value": decay }), true);
        for ((row, column), expected) in PLACES.into_iter().zip(expected) {
            let found = made.row(row)[column];
            assert!((found - expected).abs() < 2e-6, "{row}, {column}: {found} and {expected}");
        }
    }
}
