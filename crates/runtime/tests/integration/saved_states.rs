//! All architectures: a sequence that is restored from its saved states continues to the bit.

use std::sync::Arc;

use gguf::TensorType;
use gguf_graph::OutputKind;
use gguf_models::registry::architectures_with_graph;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision, StateArray};

use crate::tiny;

const IDS: [u32; 8] = [3, 1, 4, 1, 5, 2, 6, 7];

fn executor(name: &str) -> Arc<Executor> {
    let graph = tiny::tiny(name).unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
    let model = tiny::model(&graph).unwrap();
    Arc::new(Executor::new(&model, graph, Precision::Exact).unwrap())
}

fn context(executor: &Arc<Executor>, cache_type: CacheType) -> Context {
    let options = ContextOptions { tokens: 8, sequences: 2, cache_type, batch: 3 };
    Context::new(executor.clone(), options).unwrap()
}

fn run(context: &mut Context, ids: &[u32]) -> Vec<f32> {
    let graph = context.executor().graph();
    let kinds = [OutputKind::Logits, OutputKind::Hidden];
    let kind = kinds.into_iter().find(|kind| graph.output(*kind).is_some()).unwrap();
    context.run(&Batch::all_outputs(ids), kind, &()).unwrap().data
}

fn restore(
    context: &mut Context,
    [saved, tokens]: [usize; 2],
    arrays: &[StateArray],
) -> Result<bool, gguf::Error> {
    let find = |name: &str| arrays.iter().find(|array| array.name == name).cloned();
    context.restore(0, saved, tokens, &mut |name| Ok(find(name)))
}

#[test]
fn restored_sequences_continue_to_the_bit() {
    let mut tested = 0;
    for name in architectures_with_graph() {
        let executor = executor(name);
        let graph = executor.graph();
        if graph.encoder().is_some() || graph.raw().states.is_empty() {
            continue;
        }
        tested += 1;
        for cache_type in CacheType::ALL {
            for len in [1, 5] {
                let mut first = context(&executor, cache_type);
                run(&mut first, &IDS[..len]);
                let saved: Vec<StateArray> = first.states(0).collect();
                for array in &saved {
                    let (block, bytes) = array.tensor_type.block().unwrap();
                    let len = array.row_len / block * bytes * array.rows;
                    assert_eq!(len, array.data.len() as u64, "{name}: {}", array.name);
                }
                let expected = run(&mut first, &IDS[len..]);
                let mut second = context(&executor, cache_type);
                // What the sequence had before does not matter.
                run(&mut second, &IDS[3..5]);
                assert!(restore(&mut second, [len; 2], &saved).unwrap());
                assert_eq!(second.len(0), len);
                assert!(run(&mut second, &IDS[len..]) == expected, "{name} {cache_type:?} {len}");
                let part = restore(&mut second, [len, len - 1], &saved).unwrap();
                assert_eq!(part, second.can_truncate(), "{name}");
                if part {
                    run(&mut second, &IDS[len - 1..len]);
                    assert!(run(&mut second, &IDS[len..]) == expected, "{name}, from a part");
                }
            }
        }
    }
    assert!(tested > 50, "{tested} architectures keep states");
}

#[test]
fn states_that_do_not_fit_are_refused() {
    for name in ["llama", "mamba", "rwkv7"] {
        let executor = executor(name);
        let mut first = context(&executor, CacheType::F16);
        run(&mut first, &IDS[..4]);
        let saved: Vec<StateArray> = first.states(0).collect();
        let fails = |saved: &[StateArray], tokens: usize, code| {
            let mut second = context(&executor, CacheType::F16);
            let fault = restore(&mut second, [tokens; 2], saved).unwrap_err();
            assert_eq!(fault.code(), code, "{name}: {fault}");
            assert_eq!(second.len(0), 0);
            let mut fresh = context(&executor, CacheType::F16);
            assert!(run(&mut second, &IDS) == run(&mut fresh, &IDS), "{name}");
        };
        fails(&saved[1..], 4, "state-invalid");
        fails(&saved, 9, "context-full");
        let changed = |change: &dyn Fn(&mut StateArray)| {
            let mut saved = saved.clone();
            saved.last_mut().map(change);
            saved
        };
        fails(&changed(&|array| array.data.truncate(2)), 4, "state-invalid");
        fails(&changed(&|array| array.data.extend([0; 4])), 4, "state-invalid");
        fails(&changed(&|array| array.tensor_type = TensorType::BF16), 4, "state-invalid");
    }
}
