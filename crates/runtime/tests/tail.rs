//! Blocks of tokens that become one row, and the choice among whole blocks.

use std::sync::Arc;

use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Arithmetic, Batch, CacheType, Context, ContextOptions, Executor, Value};
use serde_json::{Value as Json, json};

#[allow(dead_code)] // The fuzz target wants more of it.
#[path = "../../../fuzz/src/graph.rs"]
mod tiny;

const TOKENS: usize = 11;
const WIDTH: usize = 3;
const BLOCK: usize = 4;

/// Numbers between -2 and 2 that look random, and are exact.
fn number(seed: usize, i: usize) -> f32 {
    ((i * i * 7 + i * 37 + seed * 11) % 64) as f32 / 16.0 - 2.0
}

/// Rows of tokens, their scores, and what places add.
fn tables() -> [(&'static str, usize, Vec<f32>); 3] {
    [("x", 1, TOKENS), ("scores", 2, TOKENS), ("places", 3, BLOCK)].map(|(name, seed, rows)| {
        (name, rows, (0..rows * WIDTH).map(|i| number(seed, i)).collect())
    })
}

/// What the last of these operations makes of the tokens, cut into batches of so many.
fn run(ops: &[Json], batch: usize) -> Value {
    let weights = tables().map(|(name, rows, _)| json!({"name": name, "shape": [WIDTH, rows]}));
    let states = json!([{"kind": "rows", "width": 2 * WIDTH, "rows": BLOCK - 1},
        {"kind": "cache", "keys": WIDTH, "values": 0}, {"kind": "cache", "keys": WIDTH, "values": WIDTH}]);
    let raw = json!({"architecture": "x", "weights": weights, "states": states,
        "main": {"ops": ops, "outputs": [{"kind": "hidden", "value": ops.len() - 1}]}});
    let graph = Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let mut executor = Executor::new(&model, graph, Arithmetic::Exact).unwrap();
    for (name, _, numbers) in tables() {
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        executor = executor.with_tensor(name, gguf::TensorType::F32, bytes).unwrap();
    }
    let options =
        ContextOptions { tokens: TOKENS, cache_type: CacheType::F32, batch, ..Default::default() };
    let mut context = Context::new(Arc::new(executor), options).unwrap();
    let ids: Vec<u32> = (0..TOKENS as u32).collect();
    context.run(&Batch::of_all(&ids), OutputKind::Hidden, &()).unwrap()
}

fn blend() -> Vec<Json> {
    let embed = |table: usize| json!({"op": "embed", "table": table, "index": "token"});
    let blend = json!({"op": "blend", "x": 0, "scores": 1, "weight": 2, "state": 0});
    vec![embed(0), embed(1), blend]
}

/// The row of a block by the formula, in double precision.
fn of_block(block: usize) -> Vec<f64> {
    let [x, scores, places] = tables().map(|(_, _, numbers)| numbers);
    let at = |numbers: &[f32], row: usize, column: usize| f64::from(numbers[row * WIDTH + column]);
    let column = |column: usize| {
        let of = |place: usize| {
            let row = block * BLOCK + place;
            let share = (at(&scores, row, column) + at(&places, place, column)).exp();
            (share * at(&x, row, column), share)
        };
        let (sum, shares) = (0..BLOCK).map(of).fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
        sum / shares
    };
    (0..WIDTH).map(column).collect()
}

#[test]
fn the_last_token_of_a_block_has_its_mean() {
    for batch in [512, 3, 1] {
        let made = run(&blend(), batch);
        for row in 0..TOKENS {
            let is_end = (row + 1) % BLOCK == 0;
            let expected = if is_end { of_block(row / BLOCK) } else { vec![0.0; WIDTH] };
            for (found, expected) in made.row(row).iter().zip(expected) {
                // A few sums of numbers below 2 in single precision.
                assert!(
                    (f64::from(*found) - expected).abs() < 1e-6,
                    "row {row}: {found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn whole_blocks_are_chosen_by_their_mean() {
    let mut ops = blend();
    ops.push(json!({"op": "choose", "query": 0, "key": 2, "heads": 1, "count": 1, "block": BLOCK,
        "whole": true, "state": 1}));
    let x = tables()[0].2.clone();
    for batch in [512, 3, 1] {
        let made = run(&ops, batch);
        for row in 0..TOKENS {
            let query = &x[row * WIDTH..(row + 1) * WIDTH];
            let score = |block: usize| -> f64 {
                of_block(block).iter().zip(query).map(|(k, q)| k * f64::from(*q)).sum()
            };
            let best = (0..(row + 1) / BLOCK).max_by(|a, b| score(*a).total_cmp(&score(*b)));
            assert_eq!(made.row(row), [best.map_or(-1.0, |block| block as f32)], "row {row}");
        }
    }
    assert!(run(&ops, 512).data.contains(&0.0) && run(&ops, 512).data.contains(&1.0));
}

/// The mean of tokens, weighed by the softmax of their scores.
fn attended(x: &[f32], row: usize, seen: impl Iterator<Item = usize>) -> Vec<f64> {
    let of = |row: usize| x[row * WIDTH..(row + 1) * WIDTH].iter().map(|x| f64::from(*x));
    let seen: Vec<(usize, f64)> =
        seen.map(|j| (j, of(row).zip(of(j)).map(|(q, k)| q * k).sum::<f64>().exp())).collect();
    let all: f64 = seen.iter().map(|(_, share)| share).sum();
    let column =
        |at: usize| seen.iter().map(|(j, share)| share / all * of(*j).nth(at).unwrap()).sum();
    (0..WIDTH).map(column).collect()
}

#[test]
fn a_tail_is_looked_at_besides() {
    let x = tables()[0].2.clone();
    for tail in [true, false] {
        let mut ops = blend();
        ops.push(
            json!({"op": "choose", "query": 0, "key": 2, "heads": 1, "count": 1, "block": BLOCK,
            "whole": true, "state": 1}),
        );
        ops.push(
            json!({"op": "attention", "query": 0, "heads": 1, "heads_kv": 1, "key_len": WIDTH,
            "value_len": WIDTH, "scale": 1.0, "mask": "causal",
            "memory": {"cached": {"key": 0, "value": 0, "state": 2}},
            "among": {"chosen": 3, "block": BLOCK, "tail": tail}}),
        );
        let chosen = run(&ops[..4], 512);
        for batch in [512, 3, 1] {
            let made = run(&ops, batch);
            for row in 0..TOKENS {
                let is_open = (row + 1) % BLOCK > 0;
                let sees = |j: usize| {
                    (j / BLOCK) as f32 == chosen.row(row)[0]
                        || tail && is_open && j / BLOCK == row / BLOCK
                };
                let seen: Vec<usize> = (0..=row).filter(|j| sees(*j)).collect();
                let expected = if seen.is_empty() {
                    vec![0.0; WIDTH]
                } else {
                    attended(&x, row, seen.into_iter())
                };
                for (found, expected) in made.row(row).iter().zip(expected) {
                    // Shares and sums are of single precision, numbers below 2.
                    let error = (f64::from(*found) - expected).abs();
                    assert!(error < 1e-5, "tail: {tail}, row {row}: {found}, {expected}");
                }
            }
        }
    }
}
