//! Tokenizers and chat templates of GGUF models.
//!
//! - A [`Tokenizer`] encodes text to token ids and decodes ids; a [`Decoder`] decodes
//!   incrementally.
//! - [`template`] renders a conversation with the model's chat template, as `transformers` does.
//! - With the feature `huggingface`, a `HuggingFace` runs a `tokenizer.json`, and `diff` compares
//!   it with the tokenizer of a model file.
//!
//! ```
//! use gguf::{Array, Metadata};
//! use gguf_tokenizer::template::{Context, Template};
//! use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};
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
//! let tokenizer = Tokenizer::from_metadata(&metadata, TokenizerOptions::default())?;
//! assert_eq!(tokenizer.encode(&prompt, EncodeOptions::default()), [3, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decoder;
#[cfg(feature = "huggingface")]
pub mod diff;
mod error;
#[cfg(feature = "huggingface")]
mod huggingface;
mod jinja;
mod llama_cpp;
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
pub use options::{Compat, DecodeOptions, EncodeOptions, TokenizerOptions};
pub use tokenizer::Tokenizer;
pub use trace::{Merge, Piece, Trace, Word};
