//! Collection of importance matrices: squared inputs of each matmul.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Executor, Observer, Value};
use gguf_store::Progress;

use crate::predictor::{Predictor, batch_ranges};
use crate::sums::Sums;
use crate::{Chunks, Importance, RunOptions};

/// Name of the text and tensors of an importance matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Name of the text in the file.
    pub dataset: String,
    /// Includes `output.weight` in addition to the matrices of layers.
    pub output: bool,
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

/// Receives the number of finished chunks and a function that returns the sums so far. An error stops the work.
pub type Each<'e> = dyn FnMut(usize, &dyn Fn() -> Importance) -> Result<(), Error> + 'e;

/// Adds the squared inputs of each matmul for all tokens of the chunks to the sums in `before`.
///
/// # Errors
/// `weights-unusable` if an input is NaN; errors of `each`; as [`gguf_runtime::Context::run`].
pub fn imatrix(
    executor: &Arc<Executor>,
    chunks: &Chunks,
    options: RunOptions,
    collection: &Collection,
    before: Importance,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Importance, Error> {
    // The output projection is expensive and not needed.
    let kind = match executor.width(OutputKind::Hidden) {
        Some(_) if !collection.output => OutputKind::Hidden,
        _ => OutputKind::Logits,
    };
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
    let mut read = 0;
    for chunk in chunks.numbers() {
        let ids = chunks.inputs(chunk);
        for piece in &batches {
            predictor.observe(&ids, piece.clone(), kind, &collector, progress)?;
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
        each(read, &|| collected(read))?;
    }
    Ok(collected(read))
}
