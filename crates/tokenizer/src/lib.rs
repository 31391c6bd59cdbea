//! The text side of GGUF models: tokens and chat templates.
//!
//! - A [`Tokenizer`] turns text into the ids that a model was trained with, and back; a
//!   [`Decoder`] does so id by id.
//! - [`template`] turns a conversation into the text that the model expects, as `transformers` does.
//! - With the feature `huggingface` a `HuggingFace` runs a `tokenizer.json`, and `diff` finds where
//!   it differs from the tokenizer of a model file.
//!
//! ```
//! use gguf::{Array, Metadata};
//! use gguf_tokenizer::template::{Context, Template};
//! use gguf_tokenizer::{Encode, Options, Tokenizer};
//! let mut metadata = Metadata::new();
//! metadata.set("tokenizer.ggml.model", "llama");
//! metadata.set("tokenizer.ggml.tokens", Array::from_strings(["<unk>", "H", "i", "Hi", "!"]));
//! metadata.set("tokenizer.ggml.scores", Array::from(&[0f32, -3.0, -4.0, -1.0, -2.0][..]));
//! metadata.set("tokenizer.ggml.add_bos_token", false);
//! metadata.set("tokenizer.ggml.add_space_prefix", false);
//! metadata.set("tokenizer.chat_template", "{{ messages[0].content }}!");
//!
//! let template = Template::from_metadata(&metadata, None)?.unwrap();
//! let conversation = serde_json::json!([{ "role": "user", "content": "Hi" }]);
//! let prompt = template.render(&Context::new(conversation))?;
//! let tokenizer = Tokenizer::from_metadata(&metadata, Options::default())?;
//! assert_eq!(tokenizer.encode(&prompt, Encode::default()), [3, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decoder;
#[cfg(feature = "huggingface")]
pub mod diff;
mod error;
#[cfg(feature = "huggingface")]
mod huggingface;
mod model;
mod options;
mod special;
pub mod template;
mod token_table;
mod tokenizer;
mod trace;
mod trie;
mod vocabulary;

pub use decoder::Decoder;
#[cfg(feature = "huggingface")]
pub use huggingface::HuggingFace;
pub use options::{Compat, Decode, Encode, Options};
pub use tokenizer::Tokenizer;
pub use trace::{Merge, Piece, Trace, Word};
