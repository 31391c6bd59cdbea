//! The text side of GGUF models: tokens and chat templates.
//!
//! A [`Tokenizer`] turns text into the ids that a model was trained with, and back. A
//! [`Template`] turns a conversation into the text that the model expects, as `transformers`
//! does, and a [`Renderer`] does so in a process of its own, as is due to templates of unknown
//! origin; a [`Linter`] says what is wrong with the templates of a file. With the feature
//! `huggingface` a [`HuggingFace`] runs a `tokenizer.json`, and [`Against`] finds where it differs.

#[cfg(feature = "huggingface")]
mod against;
mod decoder;
mod error;
#[cfg(feature = "huggingface")]
mod huggingface;
mod model;
mod pieces;
mod special;
mod template;
mod tokenizer;
mod trie;
mod vocabulary;

#[cfg(feature = "huggingface")]
pub use against::{Against, CORPUS, Difference, Rule};
pub use decoder::Decoder;
#[cfg(feature = "huggingface")]
pub use huggingface::HuggingFace;
pub use template::{
    Context, Error as TemplateError, Limits as TemplateLimits, Linter, Renderer,
    Source as TemplateSource, Template,
};
pub use tokenizer::{Compat, Decode, Encode, Options, Tokenizer};
