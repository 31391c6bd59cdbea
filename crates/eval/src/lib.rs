//! What a model knows of a text.
//!
//! A text, as token ids, is cut into windows ([`Windows`]). Of each window a model predicts the tokens
//! from one on, given those before; [`perplexity()`] says how well it does, [`Comparison`] how far
//! models are from the one that they were made of, [`imatrix`] which columns of weights matter, and
//! [`measure_sensitivity`] what other types of single tensors do. [`answers()`] asks a model the questions of a
//! [`Benchmark`].
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use gguf_eval::{Cut, Perplexity, RunOptions, Windows, perplexity};
//! use gguf_runtime::{Arithmetic, Executor};
//! use gguf_store::Model;
//!
//! let model = Model::open("model.gguf".as_ref() as &std::path::Path)?;
//! let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model))?;
//! let executor = Arc::new(Executor::new(&model, graph, Arithmetic::Exact)?);
//! // Ids of a long text, which begins with token 1, as every window is to.
//! let windows = Windows::new(vec![1, 15043, 3186], Some(1), Cut::default())?;
//! let mut found = Perplexity::default();
//! let mut each = |window| Ok(found.append(&window));
//! perplexity(&executor, &windows, RunOptions::default(), None, &mut each, &())?;
//! println!("{:.4} ± {:.4}", found.value(), found.error());
//! # Ok::<(), gguf::Error>(())
//! ```

mod answers;
mod benchmark;
mod comparison;
mod divergence;
mod imatrix;
mod logits_file;
mod mean;
mod origin;
pub mod part;
mod perplexity;
mod predictor;
pub mod quality;
mod scores;
mod sensitivity;
mod sums;
mod windows;
mod worst;

pub use answers::{Answered, Answers, answers};
pub use benchmark::{Answer, Benchmark, Question, Text, Texts};
pub use comparison::{Comparison, Reference, Subject, divergence};
pub use divergence::{Divergence, Spread};
pub use imatrix::{Collection, Each, imatrix};
pub use logits_file::{LogitsFile, LogitsWriter};
pub use mean::Mean;
pub use part::Importance;
pub use perplexity::{EachWindow, Perplexity, perplexity};
pub use predictor::RunOptions;
pub use sensitivity::{
    Grouping, SensitivityOptions, Variant, divergence_of_variants, measure_sensitivity,
};
pub use sums::Sums;
pub use windows::{Cut, Windows};
pub use worst::{Candidate, Miss, Worst};
