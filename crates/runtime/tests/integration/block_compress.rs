//! Compression, selection and attention of blocks, compared with the formulas in double precision.

use std::sync::Arc;

use gguf_graph::{Graph, Limits, OutputKind};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, Token, Value};
use serde_json::{Value as Json, json};

use crate::tiny;

/// Not divisible by the block, and more than attention reads at once.
const TOKENS: usize = 223;
const BLOCK: usize = 3;
const WIDTH: usize = 4;
const HEADS: usize = 2;
const WINDOW: usize = 5;
const CHOSEN: usize = 7;
/// Error of single-precision sums over hundreds of numbers between -1 and 1.
const TOLERANCE: f64 = 1e-5;

/// Returns pseudo-random numbers between -1 and 1 that are exact in FP32.
fn number(seed: usize, i: usize) -> f32 {
    let x = (i as u64 * 2_654_435_761 + seed as u64 * 40_503) % 65_521;
    (x * x % 65_521 % 4096) as f32 / 2048.0 - 1.0
}

/// Tables of the tokens, and the position bias.
const TABLES: [(&str, usize, usize); 7] = [
    ("x", 2 * WIDTH, TOKENS),
    ("gate", 2 * WIDTH, TOKENS),
    ("narrow", WIDTH, TOKENS),
    ("query", HEADS * WIDTH, TOKENS),
    ("weights", HEADS, TOKENS),
    ("place", 2 * WIDTH, BLOCK),
    ("sinks", HEADS, 1),
];

/// Returns an element of a table.
fn table(name: &str, row: usize, column: usize) -> f64 {
    let (seed, (_, width, _)) =
        TABLES.iter().enumerate().find(|(_, (of, ..))| *of == name).unwrap();
    f64::from(number(seed, row * width + column))
}

/// Returns a context for the value of the last operation. Operations before the given ones look up the first
/// five tables.
fn context(ops: &[Json], states: Json) -> Context {
    let weights = TABLES.map(|(name, width, rows)| json!({"name": name, "shape": [width, rows]}));
    let embed = |table: usize| json!({"op": "embedding", "table": table, "index": "token"});
    let ops: Vec<Json> = (0..5).map(embed).chain(ops.iter().cloned()).collect();
    let last = ops.len() - 1;
    let raw = json!({"architecture": "x", "weights": weights, "states": states,
        "main": {"ops": ops, "outputs": [{"kind": "hidden", "value": last}]}});
    let graph = Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let mut executor = Executor::new(&model, graph, Precision::Exact).unwrap();
    for (seed, (name, width, rows)) in TABLES.into_iter().enumerate() {
        let bytes = (0..width * rows).flat_map(|i| number(seed, i).to_le_bytes()).collect();
        executor = executor.with_tensor(name, gguf::TensorType::F32, bytes).unwrap();
    }
    let options = ContextOptions {
        sequences: 2,
        tokens: TOKENS,
        cache_type: CacheType::F32,
        ..ContextOptions::default()
    };
    Context::new(Arc::new(executor), options).unwrap()
}

/// Returns the output for all tokens, and checks that it is bit-exact in other batches, with another sequence in
/// them.
fn computed(ops: &[Json], states: Json) -> Value {
    let mut context = context(ops, states);
    let run = |context: &mut Context, tokens: Vec<Token>| {
        context.run(&Batch { tokens }, OutputKind::Hidden, &()).unwrap()
    };
    let of = |sequence, ids: std::ops::Range<usize>| -> Vec<Token> {
        ids.map(|id| Token { id: id as u32, sequence, output: true }).collect()
    };
    let all = run(&mut context, of(0, 0..TOKENS));
    context.clear(0);
    let mut parts = Vec::new();
    let mut from = 0;
    for len in [1, 2, 1, 3, 4, 1, 64, 1, 1, 70].into_iter().cycle() {
        let to = TOKENS.min(from + len);
        // Another sequence, two tokens ahead, in the same batches.
        let mut tokens = of(1, from + 2..TOKENS.min(to + 2));
        let others = tokens.len();
        tokens.extend(of(0, from..to));
        parts.extend_from_slice(&run(&mut context, tokens).data[others * all.width..]);
        from = to;
        if from == TOKENS {
            break;
        }
    }
    assert!(parts == all.data, "in parts");
    all
}

fn assert_close(found: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len());
    for (column, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let error = (f64::from(*found) - wanted).abs();
        assert!(error < TOLERANCE, "{what}, {column}: {found} instead of {wanted}");
    }
}

/// Returns the mean of numbers, weighted by the softmax of their scores.
fn mean(members: &[(f64, f64)]) -> f64 {
    let weights = members.iter().map(|(score, _)| score.exp());
    let sum: f64 = weights.clone().sum();
    weights.zip(members).map(|(weight, (_, x))| weight * x).sum::<f64>() / sum
}

/// Returns the compressed row of a block.
fn compressed(block: usize, overlap: bool) -> Vec<f64> {
    let of_block = |block: usize, column: usize| {
        (0..BLOCK).map(move |place| {
            let at = block * BLOCK + place;
            (table("gate", at, column) + table("place", place, column), table("x", at, column))
        })
    };
    let column = |column: usize| {
        let own = if overlap { WIDTH + column } else { column };
        let before = block.checked_sub(1).filter(|_| overlap);
        let before = before.into_iter().flat_map(|before| of_block(before, column));
        mean(&before.chain(of_block(block, own)).collect::<Vec<_>>())
    };
    (0..if overlap { WIDTH } else { 2 * WIDTH }).map(column).collect()
}

/// Returns the operation and its state.
fn compress(overlap: bool) -> (Json, Json) {
    let rows = if overlap { 2 * BLOCK } else { BLOCK };
    let op = json!({"op": "block_compress", "x": 0, "gate": 1, "position_bias": 5, "block": BLOCK,
        "overlap": overlap, "state": 0});
    (op, json!({"kind": "row_history", "width": 4 * WIDTH, "len": rows}))
}

#[test]
fn blocks_are_gated_means() {
    for overlap in [false, true] {
        let (op, state) = compress(overlap);
        let found = computed(&[op], json!([state]));
        for position in 0..TOKENS {
            let what = format!("overlap: {overlap}, {position}");
            if (position + 1) % BLOCK == 0 {
                let wanted = compressed(position / BLOCK, overlap);
                assert_close(found.row(position), &wanted, &what);
            } else {
                assert!(found.row(position).iter().all(|x| *x == 0.0), "{what}");
            }
        }
    }
}

fn dot(query: &[f64], key: &[f64]) -> f64 {
    query.iter().zip(key).map(|(q, k)| q * k).sum()
}

/// Returns the query of a head.
fn query(position: usize, head: usize) -> Vec<f64> {
    (0..WIDTH).map(|i| table("query", position, head * WIDTH + i)).collect()
}

/// Returns the best blocks for a token, of those that end at or before it.
fn chosen(position: usize) -> Vec<usize> {
    let score = |block: &usize| -> f64 {
        let key = compressed(*block, true);
        let of_head = |head: usize| {
            table("weights", position, head) * dot(&query(position, head), &key).max(0.0)
        };
        (0..HEADS).map(of_head).sum()
    };
    let mut blocks: Vec<usize> = (0..(position + 1) / BLOCK).collect();
    blocks.sort_by(|a, b| score(b).total_cmp(&score(a)));
    blocks.truncate(CHOSEN);
    blocks
}

fn choose(state: usize) -> Json {
    json!({"op": "topk_indexer", "query": 3, "key": 5, "weights": 4, "heads": HEADS, "top_k": CHOSEN,
        "state": state})
}

#[test]
fn the_indexer_selects_the_best_blocks() {
    let (op, state) = compress(true);
    let cache = json!({"kind": "kv_cache", "key_width": WIDTH, "value_width": 0, "block": BLOCK});
    let found = computed(&[op, choose(1)], json!([state, cache]));
    for position in 0..TOKENS {
        let mut wanted: Vec<f32> = chosen(position).into_iter().map(|block| block as f32).collect();
        wanted.resize(CHOSEN, -1.0);
        assert_eq!(found.row(position), wanted, "{position}");
    }
}

#[test]
fn window_and_blocks_share_a_softmax() {
    for is_chosen in [false, true] {
        let (op, state) = compress(true);
        let kept = |values: usize, block: usize| json!({"kind": "kv_cache", "key_width": WIDTH, "value_width": values, "block": block});
        let states = json!([state, kept(0, BLOCK), kept(WIDTH, 1), kept(WIDTH, BLOCK)]);
        let mut attention = json!({"op": "attention", "query": 3, "heads": HEADS, "heads_kv": 1,
            "kv": {"cached": {"key": 2, "value": 2, "state": 2}},
            "compressed": {"key": 5, "value": 5, "state": 3},
            "key_len": WIDTH, "value_len": WIDTH, "scale": 0.7, "mask": {"sliding_window": WINDOW},
            "sinks": 6});
        if is_chosen {
            attention["compressed"]["indices"] = 6.into();
        }
        let found = computed(&[op, choose(1), attention], states);
        for position in 0..TOKENS {
            let narrow = |at: usize| (0..WIDTH).map(|i| table("narrow", at, i)).collect();
            let window = (position + 1).saturating_sub(WINDOW)..position + 1;
            let blocks =
                if is_chosen { chosen(position) } else { (0..(position + 1) / BLOCK).collect() };
            let blocks = blocks.into_iter().map(|block| compressed(block, true));
            let seen: Vec<Vec<f64>> = window.map(narrow).chain(blocks).collect();
            for head in 0..HEADS {
                let query = query(position, head);
                let column = |i: usize| {
                    let own = seen.iter().map(|key| (0.7 * dot(&query, key), key[i]));
                    mean(&own.chain([(table("sinks", 0, head), 0.0)]).collect::<Vec<_>>())
                };
                let wanted: Vec<f64> = (0..WIDTH).map(column).collect();
                let found = &found.row(position)[head * WIDTH..(head + 1) * WIDTH];
                assert_close(found, &wanted, &format!("chosen: {is_chosen}, {position}"));
            }
        }
    }
}

#[test]
fn rope_of_blocks_round_trips() {
    let rotate = |x: usize, block: usize, inverse: bool| {
        json!({"op": "rope", "x": x, "heads": 1, "parameters": {"layout": "interleaved", "dimensions": 2,
            "start": 2, "freq_base": 100.0, "block": block, "inverse": inverse}})
    };
    // Without a state, positions would restart with each batch.
    let (op, state) = compress(false);
    let turned = computed(&[op.clone(), rotate(2, BLOCK, false)], json!([state]));
    let back = [op, rotate(2, BLOCK, false), rotate(6, BLOCK, true)];
    let back = computed(&back, json!([state]));
    for position in 0..TOKENS {
        let (sin, cos) = ((position - position % BLOCK) as f64).sin_cos();
        let own: Vec<f64> = (0..WIDTH).map(|i| table("narrow", position, i)).collect();
        let [x, y] = [own[2], own[3]];
        let wanted = [own[0], own[1], x * cos - y * sin, x * sin + y * cos];
        assert_close(turned.row(position), &wanted, &format!("{position}"));
        assert_close(back.row(position), &own, &format!("{position} and back"));
    }
}
