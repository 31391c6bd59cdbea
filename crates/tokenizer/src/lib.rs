//! The text side of GGUF models: tokens and chat templates.
//!
//! A [`Tokenizer`] turns text into the ids that a model was trained with, and back. A
//! [`Template`] turns a conversation into the text that the model expects, as `transformers`
//! does; [`lint`] says what is wrong with the templates of a file.

mod decoder;
mod error;
mod model;
mod pieces;
mod special;
mod template;
mod tokenizer;
mod trie;
mod vocabulary;

pub use decoder::Decoder;
pub use error::Error;
pub use template::{Context, Error as TemplateError, Template, lint};
pub use tokenizer::{Compat, Decode, Encode, Options, Tokenizer};
