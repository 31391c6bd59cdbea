//! Logits of the reference checkpoints, converted to F32 and run in exact precision.

mod data;
mod lora;
mod states;
mod stored;

use std::path::PathBuf;
use std::sync::Arc;

use gguf_graph::{Graph, OutputKind};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Precision};

use self::data::{Reference, distance};

/// Folders of checkpoints of causal language models.
#[rustfmt::skip]
const TEXT: &[&str] = &[
    "llama", "mistral", "mixtral", "mixed-llama", "gptq-llama", "awq-llama", "fp8-llama",
    "gpt2", "gpt_neox", "gptj", "mpt", "bloom", "falcon", "qwen2", "qwen3", "qwen3moe",
    "gemma2", "gemma3", "phi3", "stablelm", "olmo2",
];

/// Tolerance in standard deviations of the reference: both programs sum in F32, in different orders.
const TOLERANCE: f32 = 1e-3;

fn zoo(folder: &str) -> Option<PathBuf> {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder with the reference data");
        return None;
    };
    Some(PathBuf::from(data).join("zoo").join(folder))
}

/// Returns options for a number of sequences with an exact cache.
fn options(sequences: usize) -> ContextOptions {
    ContextOptions { sequences, cache_type: CacheType::F32, ..ContextOptions::default() }
}

/// Returns an executor of a checkpoint in F32.
fn executor(folder: &std::path::Path) -> Arc<Executor> {
    executor_with(folder, |graph| graph)
}

/// Returns an executor of a checkpoint in F32 with a changed graph.
fn executor_with(folder: &std::path::Path, change: impl Fn(Graph) -> Graph) -> Arc<Executor> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    data::convert(folder, &path);
    let model = gguf_store::Model::open(&path).unwrap();
    let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
    Arc::new(Executor::new(&model, change(graph), Precision::Exact).unwrap())
}

#[test]
fn logits_match_transformers() {
    for name in TEXT {
        let Some(folder) = zoo(name) else { return };
        let reference = Reference::read(&folder, "logits");
        let executor = executor(&folder);
        let mut context = Context::new(executor, options(1)).unwrap();
        let batch = Batch::all_outputs(&reference.tokens);
        let logits = context.run(&batch, OutputKind::Logits, &()).unwrap();
        let far = distance(&logits.data, &reference.numbers);
        eprintln!("{name}: {far:e}");
        assert!(far < TOLERANCE, "{name}: {far}");
    }
}

#[test]
fn token_by_token_is_bit_exact() {
    for name in TEXT {
        let Some(folder) = zoo(name) else { return };
        let reference = Reference::read(&folder, "logits");
        let executor = executor(&folder);
        let mut whole = Context::new(executor.clone(), options(3)).unwrap();
        let whole =
            whole.run(&Batch::all_outputs(&reference.tokens), OutputKind::Logits, &()).unwrap();
        // Three sequences, each one token behind the one before, in common batches.
        let mut context = Context::new(executor, options(3)).unwrap();
        let len = reference.tokens.len();
        let mut parts = vec![Vec::new(); 3];
        for step in 0..len + 2 {
            let mut batch = Batch::default();
            for sequence in 0..3 {
                let Some(&id) = step.checked_sub(sequence).and_then(|at| reference.tokens.get(at))
                else {
                    continue;
                };
                batch.tokens.push(gguf_runtime::Token { id, sequence, output: true });
            }
            let made = context.run(&batch, OutputKind::Logits, &()).unwrap();
            for (row, token) in batch.tokens.iter().enumerate() {
                parts[token.sequence].extend_from_slice(made.row(row));
            }
        }
        for part in parts {
            assert!(part == whole.data, "{name}: to the bit");
        }
    }
}

#[test]
fn runs_can_be_cancelled() {
    let Some(folder) = zoo("llama") else { return };
    let mut context = Context::new(executor(&folder), options(1)).unwrap();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let progress = |_| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0..5 => std::ops::ControlFlow::Continue(()),
        _ => std::ops::ControlFlow::Break(()),
    };
    let batch = Batch::all_outputs(&data::tokens(&folder));
    let ended = context.run(&batch, OutputKind::Logits, &progress).unwrap_err();
    assert_eq!(ended.code(), "interrupted");
    assert_eq!(context.len(0), 0);
}
