//! Models with recurrent states and encoders.

use std::path::Path;
use std::sync::Arc;

use gguf_graph::{OutputKind, Pooling};
use gguf_runtime::{Batch, Context, Executor, Token, Value};

use super::data::{Reference, distance};
use super::{TOLERANCE, executor, executor_with, options, zoo};

/// Folders of models with recurrent states.
const RECURRENT: &[&str] = &["mamba", "rwkv"];

fn check(name: &str, found: &[f32], reference: &[f32]) {
    let far = distance(found, reference);
    eprintln!("{name}: {far:e}");
    assert!(far < TOLERANCE, "{name}: {far}");
}

/// Checks the logits of the same tokens in several sequences, each one token behind the one before, in common
/// batches.
fn interleaved(context: &mut Context, tokens: &[u32], sequences: usize) -> Vec<Vec<f32>> {
    let mut parts = vec![Vec::new(); sequences];
    for step in 0..tokens.len() + sequences - 1 {
        let mut batch = Batch::default();
        for sequence in 0..sequences {
            if let Some(&id) = step.checked_sub(sequence).and_then(|at| tokens.get(at)) {
                batch.tokens.push(Token { id, sequence, output: true });
            }
        }
        let made = context.run(&batch, OutputKind::Logits, &()).unwrap();
        for (row, token) in batch.tokens.iter().enumerate() {
            parts[token.sequence].extend_from_slice(made.row(row));
        }
    }
    parts
}

#[test]
fn recurrent_models_match_transformers() {
    for name in RECURRENT {
        let Some(folder) = zoo(name) else { return };
        let reference = Reference::read(&folder, "logits");
        let mut context = Context::new(executor(&folder), options(3)).unwrap();
        let all = Batch::all_outputs(&reference.tokens);
        let whole = context.run(&all, OutputKind::Logits, &()).unwrap();
        check(name, &whole.data, &reference.numbers);
        context.clear(0);
        for part in interleaved(&mut context, &reference.tokens, 3) {
            assert!(part == whole.data, "{name}: to the bit");
        }
    }
}

#[test]
fn batches_are_split() {
    for name in RECURRENT {
        let Some(folder) = zoo(name) else { return };
        let reference = Reference::read(&folder, "logits");
        let executor = executor(&folder);
        let all = Batch::all_outputs(&reference.tokens);
        let [whole, cut] = [512, 3].map(|batch| {
            let options = gguf_runtime::ContextOptions { batch, ..options(1) };
            let mut context = Context::new(executor.clone(), options).unwrap();
            context.run(&all, OutputKind::Logits, &()).unwrap()
        });
        assert!(whole == cut, "{name}: to the bit");
    }
}

/// Returns the spectrogram of the reference, a row per frame.
pub fn frames(folder: &Path) -> Value {
    let mel = Reference::read(folder, "mel").numbers;
    let width = 80;
    let rows = mel.len() / width;
    let data = (0..rows).flat_map(|row| (0..width).map(move |bin| (row, bin)));
    Value { rows, width, data: data.map(|(row, bin)| mel[bin * rows + row]).collect() }
}

#[test]
fn whisper_matches_transformers() {
    let Some(folder) = zoo("whisper") else { return };
    let mel = frames(&folder);
    let mut context = Context::new(executor(&folder), options(3)).unwrap();
    let too_early = context.run(&Batch::all_outputs(&[1]), OutputKind::Logits, &()).unwrap_err();
    assert_eq!(too_early.code(), "features-missing");
    for sequence in 0..3 {
        let encoded = context.encode(sequence, &mel, &()).unwrap();
        let reference = Reference::read(&folder, "encoder_output");
        check("whisper's encoder", &encoded.data, &reference.numbers);
    }
    let reference = Reference::read(&folder, "logits");
    let all = Batch::all_outputs(&reference.tokens);
    let whole = context.run(&all, OutputKind::Logits, &()).unwrap();
    check("whisper", &whole.data, &reference.numbers);
    assert!(context.truncate(0, 0), "what it heard stays");
    for part in interleaved(&mut context, &reference.tokens, 3) {
        assert!(part == whole.data, "whisper: to the bit");
    }
}

/// Returns the outputs for texts in one batch.
fn hidden(executor: &Arc<Executor>, texts: &[&[u32]]) -> Vec<Vec<f32>> {
    let mut context = Context::new(executor.clone(), options(texts.len())).unwrap();
    let mut batch = Batch::default();
    for (sequence, ids) in texts.iter().enumerate() {
        batch.tokens.extend(ids.iter().map(|&id| Token { id, sequence, output: true }));
    }
    let made = context.run(&batch, OutputKind::Hidden, &()).unwrap();
    let mut rest = made.data.as_slice();
    let part = |ids: &&[u32]| rest.split_off(..ids.len() * made.width).unwrap().to_vec();
    texts.iter().map(part).collect()
}

#[test]
fn bert_matches_transformers() {
    let Some(folder) = zoo("bert") else { return };
    let reference = Reference::read(&folder, "last_hidden_state");
    let executor = executor(&folder);
    let ids = reference.tokens.as_slice();
    let alone = hidden(&executor, &[ids]).remove(0);
    check("bert", &alone, &reference.numbers);
    let together = hidden(&executor, &[&ids[..5], ids, &ids[3..]]);
    assert!(together[1] == alone, "to the bit");
    assert!(together[0] == hidden(&executor, &[&ids[..5]])[0], "to the bit");
}

#[test]
fn pooling_returns_one_row_per_sequence() {
    let Some(folder) = zoo("bert") else { return };
    let ids = Reference::read(&folder, "last_hidden_state").tokens;
    let texts = [&ids[..5], &ids, &ids[3..4]];
    let rows = hidden(&executor(&folder), &texts);
    for kind in [Pooling::Mean, Pooling::Cls, Pooling::Last] {
        let executor = executor_with(&folder, |graph| graph.pooled(kind).unwrap());
        let mut context = Context::new(executor, options(3)).unwrap();
        let mut batch = Batch::default();
        // Interleaved token by token.
        for at in 0..ids.len() {
            let token = |(sequence, ids): (usize, &&[u32])| {
                ids.get(at).map(|&id| Token { id, sequence, output: true })
            };
            batch.tokens.extend(texts.iter().enumerate().filter_map(token));
        }
        let made = context.run(&batch, OutputKind::Pooled, &()).unwrap();
        assert_eq!(made.rows, 3);
        for (number, rows) in rows.iter().enumerate() {
            let rows: Vec<&[f32]> = rows.chunks_exact(made.width).collect();
            let mean =
                |column: usize| rows.iter().map(|row| row[column]).sum::<f32>() / rows.len() as f32;
            let wanted = match kind {
                Pooling::Mean => (0..made.width).map(mean).collect(),
                Pooling::Cls => rows[0].to_vec(),
                Pooling::Last => rows[rows.len() - 1].to_vec(),
            };
            assert!(made.row(number) == wanted, "{kind:?} of text {number}, to the bit");
        }
        // A model without states reads each text from its beginning.
        assert!(context.is_empty());
        assert!(context.run(&batch, OutputKind::Pooled, &()).unwrap() == made);
    }
}
