//! The text side of GGUF models: so far, chat templates.
//!
//! A [`Template`] turns a conversation into the text that the model expects, as `transformers`
//! does; [`lint`] says what is wrong with the templates of a file.

mod template;

pub use template::{Context, Error, Template, lint};
