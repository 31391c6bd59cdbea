//! What a model knows of a text.
//!
//! A text, as token ids, is cut into windows ([`Windows`]). Of each window a model predicts the tokens
//! from one on, given those before; [`perplexity`] says how well it does, [`divergence`] how far
//! models are from the one that they were made of, [`imatrix`] which columns of weights matter, and
//! [`sensitivity`] what other types of single tensors do.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use gguf_eval::{Cut, RunOptions, Windows, perplexity};
//! use gguf_runtime::{Arithmetic, Executor};
//! use gguf_store::Model;
//!
//! let model = Model::open("model.gguf".as_ref() as &std::path::Path)?;
//! let graph = gguf_graph::build(model.metadata(), Executor::tensors(&model))?;
//! let executor = Arc::new(Executor::new(&model, graph, Arithmetic::Exact)?);
//! // Ids of a long text, which begins with token 1, as every window is to.
//! let windows = Windows::new(vec![1, 15043, 3186], Some(1), Cut::default())?;
//! let found = perplexity(&executor, &windows, RunOptions::default(), &mut |_| {}, &())?;
//! println!("{:.4} ± {:.4}", found.value(), found.error());
//! # Ok::<(), gguf::Error>(())
//! ```

mod divergence;
mod imatrix;
mod mean;
mod perplexity;
mod predictor;
mod scores;
mod sensitivity;
mod windows;

pub use divergence::{Divergence, Spread, divergence};
pub use imatrix::{Collection, Each, imatrix};
pub use mean::Mean;
pub use perplexity::{Perplexity, perplexity};
pub use predictor::RunOptions;
pub use sensitivity::{Variant, sensitivity};
pub use windows::{Cut, Windows};
