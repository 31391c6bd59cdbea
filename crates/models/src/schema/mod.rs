//! The vocabulary of the format: which keys exist and what they hold, and which keys and tensors
//! each architecture has.
//!
//! All of it is data. The rules check files against it, converters name what they write by it,
//! and `docs/metadata.md` is printed from it.
//!
//! ```
//! use gguf_models::schema;
//! let key = schema::key("llama.block_count").unwrap();
//! assert_eq!(key.name, "{arch}.block_count");
//! assert!(schema::architecture("llama").unwrap().required.concat().contains(&"block_count"));
//! ```

mod arch;
mod architecture;
mod document;
mod expression;
mod groups;
mod hyper;
mod key;
mod keys;
mod lookup;
pub mod projector;
mod symbols;

pub use arch::ARCHITECTURES;
pub use architecture::{Architecture, Block, Expected, Item, Need};
pub use document::document;
pub use expression::{Scope, dimensions, evaluate};
pub use hyper::Hyper;
pub use key::{Absent, Arity, KeySchema, Range, Requirement, Section, ValueSchema};
pub use keys::SECTIONS;
pub use lookup::{key, nearest_key};
pub use symbols::{SYMBOLS, Source, Symbol};

/// The architecture that `general.architecture` names; `None` if the tables do not know it.
pub fn architecture(name: &str) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().copied().find(|architecture| architecture.name == name)
}
