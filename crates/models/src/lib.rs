//! Model architectures: which metadata keys and tensors each has.
//!
//! ```
//! use gguf_models::schema;
//! let key = schema::key("llama.block_count").unwrap();
//! assert_eq!(key.name, "{arch}.block_count");
//! assert!(schema::architecture("llama").unwrap().required.concat().contains(&"block_count"));
//! ```

pub mod pre_tokenizer;
pub mod schema;
pub mod token;
