//! Draft models with a tiny model of random weights: drafts are its greedy continuation, however the text changes.

use std::sync::Arc;

use gguf_graph::OutputKind;
use gguf_runtime::speculation::{DraftModel, DraftSource};
use gguf_runtime::{Batch, Context, ContextOptions, Executor, Precision};

use crate::batches::write;
use crate::schema_models::{metadata, tensors, text_models};

fn executor() -> Arc<Executor> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let of = text_models().find(|of| of.name == "llama").unwrap();
    let metadata = metadata(of, &[]);
    write(&metadata, tensors(of, &metadata, true), &path);
    let model = gguf_store::Model::open(&path).unwrap();
    let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
    Arc::new(Executor::new(&model, graph, Precision::Exact).unwrap())
}

fn context(executor: &Arc<Executor>) -> Context {
    let options = ContextOptions { tokens: 24, ..ContextOptions::default() };
    Context::new(executor.clone(), options).unwrap()
}

/// Returns the most likely token after a text, among the first ids.
fn greedy(executor: &Arc<Executor>, text: &[u32], vocabulary: usize) -> u32 {
    let batch = Batch::last_output(text, 0);
    let logits = context(executor).run(&batch, OutputKind::Logits, &()).unwrap();
    let logits = &logits.row(0)[..vocabulary];
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|logit| *logit == best).unwrap() as u32
}

#[test]
fn drafts_are_greedy_continuations_of_changing_texts() {
    let executor = executor();
    let all = executor.vocabulary_len().unwrap();
    for vocabulary in [all, 5] {
        let mut model = DraftModel::new(context(&executor), &executor, vocabulary);
        let texts: [&[u32]; 7] =
            [&[1, 2, 3], &[1, 2, 3, 7], &[1, 2], &[1, 2], &[9], &[9, 8, 7, 6, 5, 4], &[9, 8, 1]];
        for text in texts {
            let mut draft = Vec::new();
            for _ in 0..4 {
                let token = model.next(text, &draft, &()).unwrap().unwrap();
                let expected = greedy(&executor, &[text, &draft[..]].concat(), vocabulary);
                assert_eq!(token.id, expected, "{text:?} {draft:?}");
                let least = 1.0 / vocabulary as f64 - 1e-9;
                assert!((least..=1.0).contains(&token.confidence), "{}", token.confidence);
                draft.push(token.id);
            }
        }
    }
}

#[test]
fn texts_that_the_model_cannot_read_have_no_drafts() {
    let executor = executor();
    let all = executor.vocabulary_len().unwrap();
    let mut model = DraftModel::new(context(&executor), &executor, all);
    assert_eq!(model.next(&[], &[], &()).unwrap(), None);
    assert_eq!(model.next(&[1, all as u32], &[], &()).unwrap(), None);
    assert_eq!(model.next(&[1; 24], &[1], &()).unwrap(), None);
    assert!(model.next(&[1; 24], &[], &()).unwrap().is_some());
    // A cancelled run leaves no tokens behind.
    let cancelled = |_| std::ops::ControlFlow::Break(());
    assert!(model.next(&[2; 20], &[], &cancelled).is_err());
    let token = model.next(&[2; 3], &[], &()).unwrap().unwrap();
    assert_eq!(token.id, greedy(&executor, &[2; 3], all));
}
