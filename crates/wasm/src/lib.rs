//! WebAssembly module of the npm package `gguf-kit-wasm`.
//!
//! The TypeScript in `npm/src` is the interface for users: it reads bytes, and passes them to this module, which does
//! everything else. Errors are thrown as JSON texts, `error` of the schema `error/1`.

mod array;
mod chat_template;
mod error;
mod header;
mod model;
mod scalar;
mod tokenizer;
