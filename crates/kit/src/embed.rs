//! Text embeddings and classification.

use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Value};
use gguf_store::Progress;

use crate::Error;
use crate::run::LoadedModel;

/// Output of [`embed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedOutput {
    /// One pooled embedding per text.
    Pooled,
    /// One hidden state per token.
    Tokens,
    /// The class scores of each text.
    Classes,
}

/// Maximum batch size in tokens; larger batches are not faster.
const MAX_BATCH: usize = 512;

/// Computes the output of each text, given as token ids: a matrix of one row, or of one row per token.
///
/// # Errors
/// `result-missing` if the model does not have this output, or a text has no tokens; as
/// [`Context::run_finite`].
pub fn embed(
    model: &LoadedModel,
    texts: &[Vec<u32>],
    output: EmbedOutput,
    cache_type: CacheType,
    progress: &dyn Progress,
) -> Result<Vec<Value>, Error> {
    let kind = match output {
        EmbedOutput::Pooled => OutputKind::Pooled,
        EmbedOutput::Tokens => OutputKind::Hidden,
        EmbedOutput::Classes => OutputKind::Classes,
    };
    if model.executor.width(kind).is_none() {
        let (what, help) = match output {
            EmbedOutput::Pooled => {
                ("the model has no pooling type", "select one with --pooling mean, cls or last")
            }
            EmbedOutput::Tokens => {
                ("the model has no hidden states", "`gguf graph` lists its outputs")
            }
            EmbedOutput::Classes => {
                ("the model is not a classifier", "`gguf graph` lists its outputs")
            }
        };
        return Err(Error::request("result-missing", what, help));
    }
    if let Some(number) = texts.iter().position(Vec::is_empty) {
        let what = format!("text {} has no tokens", number + 1);
        return Err(Error::request("result-missing", what, "omit it"));
    }
    let mut outputs = Vec::with_capacity(texts.len());
    let mut rest = texts;
    while !rest.is_empty() {
        let (group, others) = rest.split_at(batch_len(rest));
        outputs.extend(embed_batch(model, group, kind, cache_type, progress)?);
        rest = others;
    }
    Ok(outputs)
}

/// Returns the number of leading texts that fit into a batch.
fn batch_len(texts: &[Vec<u32>]) -> usize {
    let mut tokens = 0;
    let fits = |text: &&Vec<u32>| {
        tokens += text.len();
        tokens <= MAX_BATCH
    };
    texts.iter().take_while(fits).count().max(1)
}

fn embed_batch(
    model: &LoadedModel,
    texts: &[Vec<u32>],
    kind: OutputKind,
    cache_type: CacheType,
    progress: &dyn Progress,
) -> Result<Vec<Value>, Error> {
    let tokens = texts.iter().map(Vec::len).max().unwrap_or(0);
    let sequences = texts.len();
    let options = ContextOptions { tokens, sequences, cache_type, ..Default::default() };
    let mut context = Context::new(model.executor.clone(), options)?;
    let tokens = |(sequence, ids): (usize, &Vec<u32>)| Batch::for_sequence(ids, sequence).tokens;
    let batch = Batch { tokens: texts.iter().enumerate().flat_map(tokens).collect() };
    let output = context.run_finite(&batch, kind, progress)?;
    let mut rest = output.data.as_slice();
    let rows_of = |text: &Vec<u32>| {
        let rows = if kind == OutputKind::Hidden { text.len() } else { 1 };
        let (data, others) = rest.split_at((rows * output.width).min(rest.len()));
        rest = others;
        Value { rows, width: output.width, data: data.to_vec() }
    };
    Ok(texts.iter().map(rows_of).collect())
}

/// L2-normalizes every row, except zeros.
pub fn normalize(matrix: &mut Value) {
    for row in matrix.data.chunks_exact_mut(matrix.width.max(1)) {
        let square: f64 = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let length = square.sqrt().max(1e-12);
        row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}

/// Returns the class names of a classifier, if the model has them.
pub fn labels(model: &LoadedModel) -> Vec<String> {
    let metadata = &model.metadata;
    let architecture = metadata.architecture().unwrap_or_default();
    let names = metadata.array(&format!("{architecture}.classifier.output_labels"));
    let names = names.and_then(gguf::Array::strings).into_iter().flatten();
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Converts class scores to probabilities: by the sigmoid function for one class, by softmax for several.
pub fn probabilities(scores: &[f32]) -> Vec<f32> {
    if let [score] = scores {
        return vec![1.0 / (1.0 + (-score).exp())];
    }
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_whole_texts() {
        let texts = [vec![1; 300], vec![1; 200], vec![1; 20], vec![1; 900]];
        assert_eq!(batch_len(&texts), 2);
        assert_eq!(batch_len(&texts[2..]), 1);
        assert_eq!(batch_len(&texts[3..]), 1);
    }

    #[test]
    fn rows_are_l2_normalized() {
        let mut matrix = Value { rows: 2, width: 2, data: vec![3.0, 4.0, 0.0, 0.0] };
        normalize(&mut matrix);
        assert_eq!(matrix.data, [0.6, 0.8, 0.0, 0.0]);
    }

    #[test]
    fn scores_become_probabilities() {
        assert_eq!(probabilities(&[0.0]), [0.5]);
        assert_eq!(probabilities(&[1000.0, 1000.0]), [0.5, 0.5]);
    }
}
