//! Collection of importance matrices: squared inputs of each matmul.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Executor, Observer, Value};
use gguf_store::Progress;

use crate::perplexity::Perplexity;
use crate::predictor::{Predictor, batch_ranges, require_logits};
use crate::sums::Sums;
use crate::{Chunks, Importance, RunOptions};

/// Name of the text and tensors of an importance matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Name of the text in the file.
    pub dataset: String,
    /// Includes `output.weight` in addition to the matrices of layers.
    pub output: bool,
    /// Computes the perplexity of the text too, if the model has logits. This costs the output projection of every
    /// token.
    pub perplexity: bool,
}

struct Collector {
    output: bool,
    sums: Mutex<Sums>,
}

impl Observer for Collector {
    fn matmul(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        if tensor.starts_with("blk.") || self.output && tensor == "output.weight" {
            self.sums().add(tensor, expert.unwrap_or((0, 1)), x);
        }
    }
}

impl Collector {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives the number of finished chunks, their perplexity if wanted, and a function that returns the sums so far. An
/// error stops the work.
pub type Each<'e> =
    dyn FnMut(usize, Option<&Perplexity>, &dyn Fn() -> Importance) -> Result<(), Error> + 'e;

/// Adds the squared inputs of each matmul for all tokens of the chunks to the sums in `before`.
///
/// # Errors
/// `weights-unusable` if an input or a logit is NaN; errors of `each`; as [`gguf_runtime::Context::run`].
pub fn imatrix(
    executor: &Arc<Executor>,
    chunks: &Chunks,
    options: RunOptions,
    collection: &Collection,
    before: Importance,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Importance, Error> {
    // The output projection is expensive.
    let has_perplexity = collection.perplexity && executor.width(OutputKind::Logits).is_some();
    let needs_logits = collection.output || has_perplexity;
    let kind = match executor.width(OutputKind::Hidden) {
        Some(_) if !needs_logits => OutputKind::Hidden,
        _ => OutputKind::Logits,
    };
    if has_perplexity {
        require_logits(executor, chunks.largest_id())?;
    }
    let mut predictor = Predictor::new(executor, chunks, options)?;
    let collector = Collector { output: collection.output, sums: Mutex::new(before.sums) };
    let len = chunks.chunk_len();
    let batches = batch_ranges(len, std::slice::from_ref(executor), options);
    let collected = |read: usize| Importance {
        dataset: collection.dataset.clone(),
        len,
        chunks: before.chunks + read,
        sums: collector.sums().clone(),
    };
    let mut perplexity = has_perplexity.then(Perplexity::default);
    let mut read = 0;
    for chunk in chunks.numbers() {
        let ids = chunks.inputs(chunk);
        for piece in &batches {
            let output = predictor.observe(&ids, piece.clone(), kind, &collector, progress)?;
            if let Some(perplexity) = &mut perplexity
                && let Err(position) = perplexity.add_logits(chunks, chunk, piece.start, &output)
            {
                return Err(predictor.nan_error(chunks, chunk, position, progress));
            }
            progress.step(piece.len() as u64)?;
        }
        if let Some((tensor, column)) = collector.sums().fault() {
            let number = chunk + 1;
            let mut what =
                format!("the input of column {column} is NaN or infinite in chunk {number}");
            if let Some(found) = predictor.nan_origin(&ids, kind, progress)? {
                what.push_str(&format!("; it begins {}", found.what));
            }
            return Err(Error::weights(tensor, what));
        }
        read += 1;
        if let Some(perplexity) = &mut perplexity {
            perplexity.chunks = read;
        }
        each(read, perplexity.as_ref(), &|| collected(read))?;
    }
    Ok(collected(read))
}
