//! All architectures: outputs are bit-exact whatever the batches, other sequences in them, and the number of
//! threads.

use std::sync::Arc;

use gguf_graph::OutputKind;
use gguf_models::registry::architectures_with_graph as architectures;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, Token, Value};

use crate::tiny;

/// As many tokens as position tables have rows.
const IDS: [u32; 8] = [3, 1, 4, 1, 5, 2, 6, 7];

fn context(executor: &Arc<Executor>, batch: usize) -> Context {
    let tokens = IDS.len() + appended_features(executor).rows;
    let options = ContextOptions { tokens, sequences: 2, cache_type: CacheType::F32, batch };
    let mut context = Context::new(executor.clone(), options).unwrap();
    (0..2).for_each(|sequence| run_encoder(&mut context, sequence));
    context
}

/// Runs the encoder for a sequence, if the model has one.
pub fn run_encoder(context: &mut Context, sequence: usize) {
    let executor = context.executor().clone();
    let Some((program, _)) = executor.graph().encoder() else { return };
    let appended = appended_features(&executor);
    if appended.rows > 0 {
        context.append_features(sequence, &appended, &()).unwrap();
    } else if let Some(width) = program.features_width() {
        let data = (0..7 * width).map(|i| (i % 5) as f32 / 4.0).collect();
        context.encode(sequence, &Value { rows: 7, width, data }, &()).unwrap();
    } else {
        context.encode_tokens(sequence, &IDS[2..], &()).unwrap();
    }
}

/// Returns features of three tokens before the others; of none if the model has no encoder of such features.
pub fn appended_features(executor: &Executor) -> Value {
    let encoder = executor.graph().encoder();
    let width = encoder.and_then(|(program, _)| program.token_features_width());
    let Some(width) = width else { return Value::default() };
    Value { rows: 3, width, data: (0..3 * width).map(|i| (i % 7) as f32 / 4.0 - 0.5).collect() }
}

fn run(context: &mut Context, tokens: Vec<Token>) -> Value {
    first_of(context, [OutputKind::Logits, OutputKind::Hidden], tokens)
}

/// Runs the first output kind that the model computes.
fn first_of(context: &mut Context, kinds: [OutputKind; 2], tokens: Vec<Token>) -> Value {
    let graph = context.executor().graph();
    let kind = kinds.into_iter().find(|kind| graph.output(*kind).is_some()).unwrap();
    let width = graph.main().0.token_features_width().unwrap_or(0);
    let element = |id: u32, i: usize| ((id as usize * 7 + i) % 5) as f32 / 4.0 - 0.5;
    let data = tokens.iter().flat_map(|token| (0..width).map(|i| element(token.id, i)));
    let features = Value { rows: tokens.len(), width, data: data.collect() };
    context.run_kinds(&Batch { tokens }, Some(&features), &[kind], &()).unwrap().remove(0)
}

fn of(sequence: usize, ids: &[u32]) -> Vec<Token> {
    ids.iter().map(|&id| Token { id, sequence, output: true }).collect()
}

#[test]
fn outputs_do_not_depend_on_batches_or_threads() {
    for name in architectures() {
        for precision in [Precision::Exact, Precision::Fast] {
            check(name, precision);
        }
    }
}

fn check(name: &str, precision: Precision) {
    let graph = tiny::tiny(name).unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
    let model = tiny::model(&graph).unwrap();
    let whole = graph.main().0.ops.iter().any(|op| op.needs_whole_batch());
    let executor = Arc::new(Executor::new(&model, graph, precision).unwrap());
    let all = run(&mut context(&executor, 512), of(0, &IDS));
    assert!(all.data.iter().all(|number| number.is_finite()), "{name}");
    assert!(all.row(0) != all.row(7), "{name} says the same of all tokens");
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| run(&mut context(&executor, 512), of(0, &IDS)));
        assert!(found == all, "{name} with {threads} threads");
    }
    // A shorter sequence in the same batch.
    let (ours, others) = (of(0, &IDS), of(1, &IDS[3..]));
    let at = |at: usize| [others.get(at), ours.get(at)].into_iter().flatten().copied();
    let mixed: Vec<Token> = (0..IDS.len()).flat_map(at).collect();
    let beside = run(&mut context(&executor, 512), mixed.clone());
    let rows = mixed.iter().enumerate().filter(|(_, token)| token.sequence == 0);
    let beside: Vec<f32> = rows.flat_map(|(row, _)| beside.row(row).to_vec()).collect();
    assert!(beside == all.data, "{name} beside another sequence");
    if whole {
        return;
    }
    assert!(run(&mut context(&executor, 3), of(0, &IDS)) == all, "{name} in batches of 3");
    let mut context = context(&executor, 512);
    let steps = IDS.iter().flat_map(|id| run(&mut context, of(0, &[*id])).data);
    assert!(steps.collect::<Vec<f32>>() == all.data, "{name} token by token");
    check_copy(name, &executor, &all);
}

/// A copy continues as its original does: with the same output of the encoder, until the original gets another.
fn check_copy(name: &str, executor: &Arc<Executor>, all: &Value) {
    let mut context = context(executor, 512);
    context.clear(1);
    run(&mut context, of(0, &IDS[..3]));
    // The first copy replaces an empty sequence, the second one a longer one.
    for _ in 0..2 {
        context.copy(0, 0..2);
        let (ours, copied) = (of(0, &IDS[3..4]), of(1, &IDS[3..]));
        let found = run(&mut context, [ours, copied].concat());
        assert!(found.row(0) == all.row(3), "{name}: the original");
        for row in 3..8 {
            assert!(found.row(row - 2) == all.row(row), "{name}: row {row} of the copy");
        }
        if !context.truncate(0, context.len(0) - 1) {
            return;
        }
    }
    context.copy(0, 1..2);
    context.clear(0);
    assert!(
        run(&mut context, of(1, &IDS[3..])).data == all.data[3 * all.width..],
        "{name}: cleared"
    );
}

#[test]
fn nan_does_not_reach_other_tokens() {
    for name in architectures() {
        for precision in [Precision::Exact, Precision::Fast] {
            let graph = tiny::tiny(name).unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
            let model = tiny::model(&graph).unwrap();
            let whole = graph.main().0.ops.iter().any(|op| op.needs_whole_batch());
            let executor = Executor::new(&model, graph, precision).unwrap();
            check_nan(name, Arc::new(executor), whole);
        }
    }
}

/// A token whose embedding is NaN changes neither earlier tokens nor other sequences.
fn check_nan(name: &str, executor: Arc<Executor>, whole: bool) {
    const TABLE: &str = "token_embd.weight";
    let weights = &executor.graph().raw().weights;
    let shape = &weights.iter().find(|weight| weight.name == TABLE).unwrap().shape;
    let numbers: usize = shape.iter().product::<u64>() as usize;
    let table = |first: f32| -> Vec<u8> {
        let number = |i: usize| if i < shape[0] as usize { first } else { (i % 13) as f32 / 8.0 };
        (0..numbers).flat_map(|i| number(i).to_le_bytes()).collect()
    };
    let ids = [&IDS[..7], &[0]].concat();
    let [number, nan] = [1.0, f32::NAN].map(|first| {
        let executor = Arc::new(
            executor.with_tensor(TABLE, gguf::TensorType::F32, table(first).into()).unwrap(),
        );
        let tokens = [of(0, &ids), of(1, &ids[..7])].concat();
        // Not the logits, which multiply by the same table.
        first_of(&mut context(&executor, 512), [OutputKind::Hidden, OutputKind::Logits], tokens)
    });
    assert!(nan.row(7).iter().all(|x| x.is_nan()) && number.row(7).iter().all(|x| !x.is_nan()));
    let first = if whole { 8 } else { 0 };
    for row in (first..15).filter(|row| *row != 7) {
        assert!(nan.row(row) == number.row(row), "{name}, row {row}");
    }
}

#[test]
fn a_weight_may_be_matrix_and_vector() {
    let graph = r#"{"architecture": "x", "states": [],
        "weights": [{"name": "table", "shape": [4, 9]}, {"name": "both", "shape": [4]}],
        "main": {"outputs": [{"kind": "hidden", "value": 2}], "ops": [
            {"op": "embedding", "table": 0, "index": "token"},
            {"op": "rms_norm", "x": 0, "epsilon": 1e-6, "weight": 1},
            {"op": "matmul", "x": 1, "weight": 1}]}}"#;
    assert!(tiny::run(graph.as_bytes()));
}

/// Records the inputs of matrix multiplications.
#[derive(Default)]
struct Entering(std::sync::Mutex<Vec<Value>>);

impl gguf_runtime::Observer for Entering {
    fn matmul(&self, _: &str, _: Option<(usize, usize)>, x: &Value) {
        self.0.lock().unwrap().push(x.clone());
    }
}

#[test]
fn matrices_of_heads_may_be_stacked() {
    let of = |shape: &str| {
        let graph = format!(
            r#"{{"architecture": "x", "states": [],
            "weights": [{{"name": "table", "shape": [4, 9]}}, {{"name": "heads", "shape": {shape}}}],
            "main": {{"outputs": [{{"kind": "hidden", "value": 1}}], "ops": [
                {{"op": "embedding", "table": 0, "index": "token"}},
                {{"op": "batched_matmul", "x": 0, "weight": 1}}]}}}}"#
        );
        let raw = serde_json::from_str(&graph).unwrap();
        let graph = gguf_graph::Graph::new(raw, gguf_graph::Limits::default()).unwrap();
        let model = tiny::model(&graph).unwrap();
        let executor = Arc::new(Executor::new(&model, graph, Precision::Exact).unwrap());
        let seen = Entering::default();
        let batch = Batch::all_outputs(&IDS);
        let mut context = context(&executor, 512);
        let made = context.observe(&batch, OutputKind::Hidden, &seen, &()).unwrap();
        let [entering] = <[Value; 1]>::try_from(seen.0.into_inner().unwrap()).unwrap();
        (made, entering)
    };
    let ((apart, whole), (below, parts)) = (of("[2, 3, 2]"), of("[2, 6]"));
    assert!(apart.data == below.data && apart.width == 6 && apart.data.iter().any(|x| *x != 0.0));
    assert_eq!((whole.rows, whole.width), (8, 4));
    assert_eq!((parts.rows, parts.width), (16, 2), "as the rows of the matrix are long");
    assert!(whole.data == parts.data);
}

/// Returns the output of `topk_indexer` for embeddings that are queries and keys, and checks that it is the same
/// token by token.
fn chosen(count: usize, block: usize, local: usize) -> Vec<Vec<f32>> {
    let graph = format!(
        r#"{{"architecture": "x", "weights": [{{"name": "table", "shape": [4, 9]}}],
        "states": [{{"kind": "kv_cache", "key_width": 4, "value_width": 0}}],
        "main": {{"outputs": [{{"kind": "hidden", "value": 1}}], "ops": [
            {{"op": "embedding", "table": 0, "index": "token"}},
            {{"op": "topk_indexer", "query": 0, "key": 0, "heads": 1, "top_k": {count}, "block": {block},
              "local_blocks": {local}, "state": 0}}]}}}}"#
    );
    let raw = serde_json::from_str(&graph).unwrap();
    let graph = gguf_graph::Graph::new(raw, gguf_graph::Limits::default()).unwrap();
    let model = tiny::model(&graph).unwrap();
    let executor = Arc::new(Executor::new(&model, graph, Precision::Exact).unwrap());
    let all = run(&mut context(&executor, 512), of(0, &IDS));
    let mut context = context(&executor, 512);
    let steps = IDS.iter().flat_map(|id| run(&mut context, of(0, &[*id])).data);
    assert!(steps.collect::<Vec<f32>>() == all.data, "token by token");
    all.data.chunks_exact(count).map(<[f32]>::to_vec).collect()
}

#[test]
fn the_indexer_selects_the_best_tokens() {
    // The contents of the table of `tiny::model`.
    let row =
        |id: u32| -> Vec<f32> { (0..4).map(|j| ((id * 4 + j) % 17) as f32 / 16.0 - 0.5).collect() };
    let score = |i: usize, j: usize| -> f32 {
        row(IDS[i]).iter().zip(row(IDS[j])).map(|(q, k)| q * k).sum()
    };
    for (count, block, local) in [(3, 1, 0), (2, 2, 0), (2, 3, 1)] {
        for (i, found) in chosen(count, block, local).iter().enumerate() {
            let best = |b: usize| {
                (b * block..i + 1)
                    .take(block)
                    .map(|j| score(i, j))
                    .fold(f32::NEG_INFINITY, f32::max)
            };
            let mut blocks: Vec<usize> = (0..=i / block).collect();
            let is_local = |b: usize| b + local > i / block;
            blocks.sort_by(|a, b| {
                is_local(*b).cmp(&is_local(*a)).then(best(*b).total_cmp(&best(*a)))
            });
            let mut wanted: Vec<f32> = blocks.iter().take(count).map(|b| *b as f32).collect();
            wanted.resize(count, -1.0);
            assert_eq!(*found, wanted, "token {i}, blocks of {block}, {local} local");
        }
    }
}
