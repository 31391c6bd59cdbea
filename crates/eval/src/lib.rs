//! Evaluation of models.
//!
//! A text is divided into chunks of token ids ([`Chunks`]). In each chunk a model predicts the later tokens.
//! [`perplexity()`] measures the predictions, [`Comparison`] the KL divergence from a reference model, [`imatrix`]
//! collects importance matrices, and [`measure_sensitivity`] the effect of quantizing single tensors. [`answers()`]
//! evaluates the questions of a [`Benchmark`]. [`quality`] is the report of the quantization types of a model.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use gguf_eval::{ChunkOptions, Perplexity, RunOptions, Chunks, perplexity};
//! use gguf_runtime::{Precision, Executor};
//! use gguf_store::Model;
//!
//! let model = Model::open("model.gguf".as_ref() as &std::path::Path)?;
//! let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model))?;
//! let executor = Arc::new(Executor::new(&model, graph, Precision::Exact)?);
//! // Ids of a long text. Token 1 replaces the first token of each chunk.
//! let chunks = Chunks::new(vec![1, 15043, 3186], Some(1), ChunkOptions::default())?;
//! let mut found = Perplexity::default();
//! let mut each = |chunk| Ok(found.append(&chunk));
//! perplexity(&executor, &chunks, RunOptions::default(), None, &mut each, &())?;
//! println!("{:.4} ± {:.4}", found.value(), found.error());
//! # Ok::<(), gguf::Error>(())
//! ```

mod benchmark;
mod chunks;
mod comparison;
mod divergence;
mod imatrix;
mod logits_file;
mod mean;
mod nan_origin;
pub mod part;
mod perplexity;
mod predictor;
pub mod quality;
pub mod recommendation;
mod scores;
mod sensitivity;
mod sums;
mod worst;

pub use benchmark::{Answer, Answered, Answers, Benchmark, Question, Text, Texts, answers};
pub use chunks::{ChunkOptions, Chunks};
pub use comparison::{Comparison, Reference, Subject, divergence};
pub use divergence::{Divergence, Spread};
pub use imatrix::{Collection, Each, imatrix};
pub use logits_file::{LogitsFile, LogitsWriter};
pub use mean::Mean;
pub use part::Importance;
pub use perplexity::{OnChunk, Perplexity, perplexity};
pub use predictor::RunOptions;
pub use sensitivity::{
    Grouping, SensitivityOptions, Variant, divergence_of_variants, measure_sensitivity,
};
pub use sums::Sums;
pub use worst::{Candidate, Miss, Worst};
