//! Texts as vectors, or as scores of classes.

use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Value};
use gguf_store::Progress;

use super::Running;
use crate::Error;

/// What texts are to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One row for each text, pooled as the graph says.
    Vector,
    /// One row for each token.
    Tokens,
    /// A score for each class.
    Classes,
}

/// Tokens that are computed together, in whole texts: more would not be faster.
const TOGETHER: usize = 512;

/// Computes for each text, given as ids, a matrix of one row, or of a row for each token.
///
/// # Errors
/// `result-missing` if the model does not compute what is wanted, or a text has no token;
/// `weights-unusable` if NaN comes out; else as [`Context::run`].
pub fn embed(
    running: &Running,
    texts: &[Vec<u32>],
    wanted: Wanted,
    cache_type: CacheType,
    progress: &dyn Progress,
) -> Result<Vec<Value>, Error> {
    let kind = match wanted {
        Wanted::Vector => OutputKind::Pooled,
        Wanted::Tokens => OutputKind::Hidden,
        Wanted::Classes => OutputKind::Classes,
    };
    if running.executor.width(kind).is_none() {
        let (what, help) = match wanted {
            Wanted::Vector => (
                "the model does not say how its tokens become one vector",
                "choose it: --pooling mean, cls or last",
            ),
            Wanted::Tokens => ("the model has no hidden states", "`gguf graph` lists what it does"),
            Wanted::Classes => ("the model is no classifier", "`gguf graph` lists what it does"),
        };
        return Err(Error::request("result-missing", what, help));
    }
    if let Some(number) = texts.iter().position(Vec::is_empty) {
        let what = format!("text {} has no token", number + 1);
        return Err(Error::request("result-missing", what, "leave it out"));
    }
    let mut made = Vec::with_capacity(texts.len());
    let mut rest = texts;
    while !rest.is_empty() {
        let (group, others) = rest.split_at(together(rest));
        made.extend(group_of(running, group, kind, cache_type, progress)?);
        rest = others;
    }
    Ok(made)
}

/// How many of the first texts are computed together.
fn together(texts: &[Vec<u32>]) -> usize {
    let mut tokens = 0;
    let fits = |text: &&Vec<u32>| {
        tokens += text.len();
        tokens <= TOGETHER
    };
    texts.iter().take_while(fits).count().max(1)
}

fn group_of(
    running: &Running,
    texts: &[Vec<u32>],
    kind: OutputKind,
    cache_type: CacheType,
    progress: &dyn Progress,
) -> Result<Vec<Value>, Error> {
    let tokens = texts.iter().map(Vec::len).max().unwrap_or(0);
    let sequences = texts.len();
    let options = ContextOptions { tokens, sequences, cache_type, ..Default::default() };
    let mut context = Context::new(running.executor.clone(), options)?;
    let of_text = |(sequence, ids): (usize, &Vec<u32>)| Batch::of_sequence(ids, sequence).tokens;
    let batch = Batch { tokens: texts.iter().enumerate().flat_map(of_text).collect() };
    let made = context.run(&batch, kind, progress)?;
    if made.data.iter().any(|number| number.is_nan()) {
        return Err(Error::weights("token_embd.weight", "the model says nothing but NaN"));
    }
    let mut rest = made.data.as_slice();
    let part = |text: &Vec<u32>| {
        let rows = if kind == OutputKind::Hidden { text.len() } else { 1 };
        let (data, others) = rest.split_at((rows * made.width).min(rest.len()));
        rest = others;
        Value { rows, width: made.width, data: data.to_vec() }
    };
    Ok(texts.iter().map(part).collect())
}

/// Makes every row 1 long; one of zeros stays.
pub fn normalize(matrix: &mut Value) {
    for row in matrix.data.chunks_exact_mut(matrix.width.max(1)) {
        let square: f64 = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let length = square.sqrt().max(1e-12);
        row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}

/// The names of the classes, as far as the model has them.
pub fn labels(running: &Running) -> Vec<String> {
    let metadata = &running.metadata;
    let architecture = metadata.architecture().unwrap_or_default();
    let names = metadata.array(&format!("{architecture}.classifier.output_labels"));
    let names = names.and_then(gguf::Array::strings).into_iter().flatten();
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Scores of classes as probabilities: of one class by itself, of several together.
pub fn probabilities(scores: &[f32]) -> Vec<f32> {
    if let [score] = scores {
        return vec![1.0 / (1.0 + (-score).exp())];
    }
    let greatest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = scores.iter().map(|score| (score - greatest).exp()).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_whole() {
        let texts = [vec![1; 300], vec![1; 200], vec![1; 20], vec![1; 900]];
        assert_eq!(together(&texts), 2);
        assert_eq!(together(&texts[2..]), 1);
        assert_eq!(together(&texts[3..]), 1);
    }

    #[test]
    fn rows_become_one_long() {
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
