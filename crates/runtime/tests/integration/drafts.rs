//! Draft models with tiny models of random weights: drafts are their greedy continuations, however the text changes.

use std::sync::Arc;

use gguf_graph::{OutputKind, State};
use gguf_models::{DraftFeatures, Purpose, build_graph_for};
use gguf_runtime::speculation::{DraftModel, DraftSource, FeatureDraft, TargetVocabulary};
use gguf_runtime::{Batch, Context, ContextOptions, Executor, MemoryBudget, Precision, Value};
use gguf_store::Model;

use crate::batches::write;
use crate::schema_models::{metadata, tensors, text_models};

const KINDS: [OutputKind; 2] = [OutputKind::Logits, OutputKind::Features];

fn executor() -> Arc<Executor> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let of = text_models().find(|of| of.name == "llama").unwrap();
    let metadata = metadata(of, &[]);
    write(&metadata, tensors(of, &metadata, true), &path);
    let model = Model::open(&path).unwrap();
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
    most_likely(&logits.row(0)[..vocabulary])
}

fn most_likely(logits: &[f32]) -> u32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|logit| *logit == best).unwrap() as u32
}

#[test]
fn drafts_are_greedy_continuations_of_changing_texts() {
    let executor = executor();
    let all = executor.vocabulary_len().unwrap();
    for vocabulary in [all, 5] {
        let mut model = DraftModel::new(
            context(&executor),
            &executor,
            TargetVocabulary::with_equal_ids(vocabulary),
        );
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

/// At first the draft depends on the last 32 tokens, and on all once 24 tokens are drafted: half of the other 48.
#[test]
fn long_texts_are_read_where_drafts_continue() {
    let executor = executor();
    let vocabulary = executor.vocabulary_len().unwrap();
    let options = ContextOptions { tokens: 128, ..ContextOptions::default() };
    let context = Context::new(executor.clone(), options).unwrap();
    let mut model =
        DraftModel::new(context, &executor, TargetVocabulary::with_equal_ids(vocabulary));
    let mut text: Vec<u32> = (0..80).map(|i| i * i % 37).collect();
    let expected = |text: &[u32]| {
        let mut context = Context::new(executor.clone(), options).unwrap();
        let batch = Batch::last_output(text, 0);
        let logits = context.run(&batch, OutputKind::Logits, &()).unwrap();
        most_likely(logits.row(0))
    };
    assert_eq!(model.unread(&text), 32);
    for number in 0..28 {
        let token = model.next(&text, &[], &()).unwrap().unwrap();
        let start = if number < 24 { 48 } else { 0 };
        assert_eq!(token.id, expected(&text[start..]), "{number}");
        assert_eq!(model.unread(&text), 0);
        text.push(number * 3 % 11);
    }
    // Much more text, as after another question.
    text.extend(0..16);
    assert_eq!(model.unread(&text), 17);
    assert_eq!(model.next(&text, &[], &()).unwrap().unwrap().id, expected(&text));
    let other: Vec<u32> = (0..70).map(|i| i * 5 % 31).collect();
    assert_eq!(model.unread(&other), 32);
    assert_eq!(model.next(&other, &[], &()).unwrap().unwrap().id, expected(&other[38..]));
}

#[test]
fn texts_that_the_model_cannot_read_have_no_drafts() {
    let executor = executor();
    let all = executor.vocabulary_len().unwrap();
    let mut model =
        DraftModel::new(context(&executor), &executor, TargetVocabulary::with_equal_ids(all));
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

/// A target model that computes features, and a draft model that reads them.
struct Pair {
    name: &'static str,
    target: Arc<Executor>,
    draft: Arc<Executor>,
}

/// Returns the architectures whose MTP layers run.
fn mtp_pairs() -> Vec<Pair> {
    let folder = tempfile::tempdir().unwrap();
    let has_mtp = |keys: &[&[&str]]| keys.concat().contains(&"nextn_predict_layers");
    let mut pairs = Vec::new();
    for of in text_models().filter(|of| has_mtp(of.required) || has_mtp(of.optional)) {
        let metadata = metadata(of, &[("nextn_predict_layers", 1u32.into())]);
        // The weights stay mapped.
        let path = folder.path().join(of.name);
        write(&metadata, tensors(of, &metadata, true), &path);
        let model = Model::open(&path).unwrap();
        let graph =
            |purpose| build_graph_for(&purpose, model.metadata(), Executor::tensors(&model));
        let Ok(graph_of_target) = graph(Purpose::Target(DraftFeatures::Mtp)) else { continue };
        let plain = Executor::new(&model, graph(Purpose::Model).unwrap(), Precision::Fast).unwrap();
        let target = plain.with_graph(graph_of_target).unwrap();
        let Ok(graph) = graph(Purpose::Mtp) else { continue };
        let memory = MemoryBudget::new(1 << 30);
        let shared = ["token_embd.weight", "output.weight", "output_norm.weight"];
        let draft = Executor::draft(&model, graph, memory, &target, &shared).unwrap();
        pairs.push(Pair { name: of.name, target: Arc::new(target), draft: Arc::new(draft) });
    }
    pairs
}

impl Pair {
    /// Returns the features of a text that the target model computes.
    fn features(&self, text: &[u32]) -> Value {
        let batch = Batch::without_outputs(text, 0);
        context(&self.target).run(&batch, OutputKind::Features, &()).unwrap()
    }

    /// Returns drafted tokens after a text: all rows are computed from the start.
    fn expected(&self, text: &[u32], start: usize, count: usize) -> Vec<u32> {
        let mut features = self.features(&text[..text.len() - 1]);
        features.data.drain(..start * features.width);
        features.rows -= start;
        let mut context = context(&self.draft);
        let mut batch = Batch::last_output(&text[start + 1..], 0);
        let mut drafted = Vec::new();
        while drafted.len() < count {
            let found = context.run_kinds(&batch, Some(&features), &KINDS, &()).unwrap();
            let id = most_likely(found[0].row(0));
            drafted.push(id);
            features = Value { rows: 1, width: features.width, data: found[1].row(0).to_vec() };
            batch = Batch::last_output(&[id], 0);
        }
        drafted
    }

    fn source(&self) -> FeatureDraft {
        let vocabulary = self.target.width(OutputKind::Logits).unwrap();
        FeatureDraft::new(
            context(&self.draft),
            &self.target,
            TargetVocabulary::with_equal_ids(vocabulary),
        )
    }

    /// Passes the features of the tokens before the last one, from a position on.
    fn read(&self, source: &mut FeatureDraft, text: &[u32], position: usize) {
        let before = &text[..text.len() - 1];
        let features = self.features(before);
        let width = features.width;
        let data = features.data[position * width..].to_vec();
        let rest = Value { rows: before.len() - position, width, data };
        source.read(position, &before[position..], &rest, &()).unwrap();
    }
}

/// Returns four drafted tokens.
fn drafted(source: &mut FeatureDraft, text: &[u32]) -> Vec<u32> {
    let mut draft = Vec::new();
    while draft.len() < 4 {
        draft.push(source.next(text, &draft, &()).unwrap().unwrap().id);
    }
    draft
}

#[test]
fn mtp_layers_draft_from_hidden_states() {
    let pairs = mtp_pairs();
    for pair in &pairs {
        let mut source = pair.source();
        let text = [3, 1, 4, 1, 5, 9, 2, 6];
        pair.read(&mut source, &text[..5], 0);
        assert_eq!(
            drafted(&mut source, &text[..5]),
            pair.expected(&text[..5], 0, 4),
            "{}",
            pair.name
        );
        // Two of the drafted tokens were right, and a third one was not.
        pair.read(&mut source, &text, 4);
        let expected = pair.expected(&text, 0, 4);
        assert_eq!(drafted(&mut source, &text), expected, "{}", pair.name);
        // The same question again, and with tokens of another source in the draft.
        assert_eq!(source.next(&text, &[], &()).unwrap().unwrap().id, expected[0]);
        assert_eq!(drafted(&mut source, &text), expected, "{}", pair.name);
        let other = [7, 8];
        let next = source.next(&text, &other, &()).unwrap().unwrap().id;
        assert_eq!(source.next(&text, &other, &()).unwrap().unwrap().id, next);
        assert_eq!(drafted(&mut source, &text), expected, "{}", pair.name);
        // Another text with the same beginning.
        let text = [3, 1, 4, 7];
        pair.read(&mut source, &text, 2);
        assert_eq!(drafted(&mut source, &text), pair.expected(&text, 0, 4), "{}", pair.name);
        // Features that begin in the middle of a text, or are missing.
        let text = [3, 1, 4, 7, 8, 2, 1, 5];
        assert_eq!(source.next(&text, &[], &()).unwrap(), None);
        pair.read(&mut source, &text, 5);
        assert_eq!(drafted(&mut source, &text), pair.expected(&text, 5, 4), "{}", pair.name);
    }
    let names: Vec<_> = pairs.iter().map(|pair| pair.name).collect();
    assert_eq!(names, EXPECTED_NAMES);
}

const EXPECTED_NAMES: &[&str] = &[
    "bailingmoe2",
    "bailingmoe3",
    "cohere2moe",
    "deepseek2",
    "exaone-moe",
    "exaone4",
    "glm4",
    "glm4moe",
    "hy_v3",
    "mimo2",
    "mistral4",
    "qwen35",
    "qwen35moe",
    "qwen3next",
    "step35",
];

/// The features of the target model are a further output: all others remain.
#[test]
fn features_do_not_change_logits() {
    for Pair { name, target, .. } in mtp_pairs() {
        let batch = Batch::all_outputs(&[3, 1, 4, 1, 5]);
        let logits = context(&target).run(&batch, OutputKind::Logits, &()).unwrap();
        let both = context(&target).run_kinds(&batch, None, &KINDS, &()).unwrap();
        assert!(both[0] == logits && both[1].rows == 5, "{name}");
        let twice = [OutputKind::Features, OutputKind::Features];
        let twice = context(&target).run_kinds(&batch, None, &twice, &()).unwrap();
        assert!(twice[0] == both[1] && twice[1] == both[1], "{name}");
    }
}

#[test]
fn features_of_another_size_are_refused() {
    let pair = mtp_pairs().into_iter().next().unwrap();
    let batch = Batch::all_outputs(&[3, 1]);
    let features = pair.features(&[3, 1]);
    let short = Value { rows: 1, data: features.data[..features.width].to_vec(), ..features };
    for features in [None, Some(&short)] {
        let fault = context(&pair.draft).run_kinds(&batch, features, &KINDS, &()).unwrap_err();
        assert_eq!(fault.code(), "features-missing");
    }
}

/// Recurrent and convolution states return to what they were.
#[test]
fn sequences_return_to_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut recurrent = 0;
    for of in text_models() {
        let metadata = metadata(of, &[]);
        write(&metadata, tensors(of, &metadata, true), &path);
        let model = Model::open(&path).unwrap();
        let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
        let ops = &graph.main().0.ops;
        let is_decoder = graph.encoder().is_none() && !ops.iter().any(|op| op.needs_whole_batch());
        let states = &graph.raw().states;
        if !is_decoder || states.is_empty() {
            continue;
        }
        recurrent +=
            usize::from(states.iter().any(|state| !matches!(state, State::KvCache { .. })));
        let executor = Arc::new(Executor::new(&model, graph, Precision::Fast).unwrap());
        let mut context = context(&executor);
        let run = |context: &mut Context, ids: &[u32]| {
            context.run(&Batch::all_outputs(ids), OutputKind::Logits, &()).unwrap()
        };
        run(&mut context, &[3, 1, 4]);
        let checkpoint = context.checkpoint(0).unwrap();
        let expected = run(&mut context, &[1, 5, 9]);
        for others in [&[7, 8, 2][..], &[1], &[]] {
            assert!(context.rewind(0, &checkpoint) && context.len(0) == 3, "{}", of.name);
            run(&mut context, others);
            assert!(context.rewind(0, &checkpoint), "{}", of.name);
            assert!(run(&mut context, &[1, 5, 9]) == expected, "{}: to the bit", of.name);
        }
        context.clear(0);
        assert!(!context.rewind(0, &checkpoint), "{}", of.name);
    }
    assert!(recurrent >= 10, "{recurrent} models have other states than KV caches");
}
