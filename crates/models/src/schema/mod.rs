//! Schema of GGUF files: standard metadata keys with their types, and the keys and tensors of each
//! architecture.
//!
//! The schema is data only. The rules check files against it, converters take key and tensor names
//! from it, and `docs/metadata.md` is generated from it.
//!
//! ```
//! use gguf_models::schema;
//! let key = schema::key("llama.block_count").unwrap();
//! assert_eq!(key.name, "{arch}.block_count");
//! assert!(schema::architecture("llama").unwrap().required.concat().contains(&"block_count"));
//! ```

pub(crate) mod architecture;
mod document;
pub(crate) mod expression;
pub(crate) mod groups;
mod hyper_parameters;
pub(crate) mod key_schema;
mod keys;
mod lookup;
pub mod projector;
pub(crate) mod symbols;

use crate::registry;
pub use architecture::{Architecture, Block, Expected, Item, Presence};
pub use document::document;
pub use expression::{Scope, dimensions, evaluate};
pub use hyper_parameters::HyperParameters;
pub use key_schema::{Arity, DefaultValue, KeySchema, Range, Requirement, Section, ValueSchema};
pub use keys::SECTIONS;
pub use lookup::{key, nearest_key};
pub use symbols::{SYMBOLS, Source, Symbol};

/// Returns all architectures, sorted by name.
pub fn architectures() -> impl Iterator<Item = &'static Architecture> + Clone {
    registry::ROWS.iter().map(|row| row.schema)
}

/// Returns the architecture with this value of `general.architecture`; `None` if it is not registered.
pub fn architecture(name: &str) -> Option<&'static Architecture> {
    registry::row(name).map(|row| row.schema)
}

/// Returns the block of the layers `blk.0.` to `blk.{block_count - 1}.`.
pub(crate) const fn layers(items: &'static [Item]) -> Block {
    Block { prefix: "blk.", from: "0", to: "n_layer", items }
}

/// Names of the standard keys; keys of an architecture have no prefix.
///
/// ```
/// assert_eq!(gguf_models::schema::key::EXPERT_COUNT, "expert_count");
/// ```
pub mod key {
    pub use super::keys::clip::*;
    pub use super::keys::general::*;
    pub use super::keys::model::*;
    pub use super::keys::side::*;
    pub use super::keys::tokenizer::*;
}
