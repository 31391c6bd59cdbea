//! Layers with a sliding window: they keep little more than the window, and the results are the same.

use std::sync::Arc;

use gguf_graph::{Mask, Op, OutputKind};
use gguf_models::registry::architectures_with_graph;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, StateArray};

use crate::tiny;

/// More tokens than a layer with a small window keeps with batches of [`BATCH`].
const TOKENS: usize = 640;
const BATCH: usize = 16;

/// Returns the architectures that have only layers with windows or rotary positions, and a window.
fn executors() -> impl Iterator<Item = (&'static str, Arc<Executor>)> {
    architectures_with_graph().filter_map(|name| {
        let graph = tiny::tiny(name).unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
        let has_window = |op: &Op| {
            matches!(op, Op::Attention(attention)
                if matches!(attention.mask, Mask::SlidingWindow(_) | Mask::Chunked(_)))
        };
        let ops = &graph.main().0.ops;
        if graph.encoder().is_some() || !ops.iter().any(has_window) {
            return None;
        }
        let model = tiny::model(&graph).unwrap();
        Some((name, Arc::new(Executor::new(&model, graph, Precision::Exact).unwrap())))
    })
}

fn context(executor: &Arc<Executor>, batch: usize) -> Context {
    let cache_type = CacheType::F16;
    let options = ContextOptions { tokens: TOKENS, sequences: 1, cache_type, batch };
    Context::new(executor.clone(), options).unwrap()
}

fn ids() -> Vec<u32> {
    (0..TOKENS as u32).map(|n| n * 7 % 11 % 8).collect()
}

fn run(context: &mut Context, ids: &[u32]) -> Vec<f32> {
    let graph = context.executor().graph();
    let kinds = [OutputKind::Logits, OutputKind::Hidden];
    let kind = kinds.into_iter().find(|kind| graph.output(*kind).is_some()).unwrap();
    context.run(&Batch::all_outputs(ids), kind, &()).unwrap().data
}

#[test]
fn rows_before_the_window_do_not_matter() {
    let ids = ids();
    let mut smaller = 0;
    for (name, executor) in executors() {
        let whole = run(&mut context(&executor, TOKENS), &ids);
        let mut small = context(&executor, BATCH);
        assert!(run(&mut small, &ids) == whole, "{name}: to the bit");
        let bytes: usize = small.states(0).map(|array| array.data.len()).sum();
        let mut all = context(&executor, TOKENS);
        run(&mut all, &ids);
        let of_all: usize = all.states(0).map(|array| array.data.len()).sum();
        smaller += usize::from(bytes < of_all);
        let width = whole.len() / TOKENS;
        if executor.can_truncate() {
            // The last tokens can be removed, and computed again.
            let from = TOKENS - 200;
            assert!(small.truncate(0, from), "{name}");
            assert!(run(&mut small, &ids[from..]) == whole[from * width..], "{name}");
            // Those before the rows that are kept cannot, and nothing changes.
            if !small.truncate(0, 60) {
                assert_eq!(small.len(0), TOKENS);
            }
            assert!(small.truncate(0, 0));
            assert!(run(&mut small, &ids[..50]) == whole[..50 * width], "{name}");
        }
    }
    assert!(smaller > 10, "{smaller} architectures keep less");
}

#[test]
fn saved_states_have_the_window() {
    let ids = ids();
    for (name, executor) in executors() {
        let mut first = context(&executor, BATCH);
        run(&mut first, &ids[..600]);
        let saved: Vec<StateArray> = first.states(0).collect();
        let expected = run(&mut first, &ids[600..]);
        let mut second = context(&executor, BATCH);
        let restore = |context: &mut Context, tokens| {
            let find = |name: &str| saved.iter().find(|array| array.name == name).cloned();
            context.restore(0, 600, tokens, &mut |name| Ok(find(name))).unwrap()
        };
        assert!(restore(&mut second, 600), "{name}");
        assert!(run(&mut second, &ids[600..]) == expected, "{name}");
        if executor.can_truncate() {
            assert!(restore(&mut second, 590), "{name}");
            run(&mut second, &ids[590..600]);
            assert!(run(&mut second, &ids[600..]) == expected, "{name}");
            if !restore(&mut second, 60) {
                assert_eq!(second.len(0), 0, "{name}");
            }
        }
    }
}
