//! What every front end of the toolkit asks for: typed options in, typed reports out.
//!
//! A command line, a viewer and a Python module parse what a user wants, call a function here, and
//! show what comes back. Models are named by words ([`open`]): a file, a directory, any shard, a URL,
//! `hf:org/repo`, `s3://bucket/key`. Work that takes long tells a [`Progress`] how far it is, which
//! may also end it, and runs on the threads of the current rayon pool ([`on_threads`]).
//!
//! | to | see |
//! |----|-----|
//! | look at a model | [`open`], [`summary`], [`memory`], [`values`], [`name`], [`tokens`] |
//! | find and repair what is wrong | [`check`], [`verify`] |
//! | change keys, or the order of bytes | [`edit`], [`key_value`], [`endian`] |
//! | encode and decode arrays | [`codec`] |
//! | run a model | [`run`] |
//! | judge a model | [`eval`], [`quality`], [`sensitivity`] |
//! | put a report into JSON | [`json`] |
//! | make a model | [`convert`], [`checkpoint`], [`quantize`] |
//!
//! ```
//! # fn main() -> Result<(), gguf_kit::Error> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("model.gguf");
//! # let mut draft = gguf::RawHeader::default();
//! # draft.metadata.set("general.architecture", "llama");
//! # std::fs::write(&path, gguf::write_header(&gguf::Header::new(draft)?)?).unwrap();
//! # let word = path.to_str().unwrap();
//! let opened = gguf_kit::open(word)?;
//! let summary = gguf_kit::summary::Summary::of(opened.model());
//! assert_eq!(summary.architecture.as_deref(), Some("llama"));
//! # Ok(())
//! # }
//! ```

mod calibration;
pub mod check;
pub mod checkpoint;
pub mod codec;
pub mod convert;
mod digest;
pub mod edit;
pub mod endian;
pub mod eval;
pub mod file_map;
mod files;
pub mod json;
pub mod key_value;
pub mod memory;
mod model;
pub mod name;
pub mod npy;
mod outputs;
pub mod quality;
pub mod quantize;
pub mod report;
pub mod run;
pub mod scratch;
pub mod sensitivity;
pub mod summary;
mod text;
mod threads;
pub mod tokens;
pub mod values;
pub mod verify;

pub use files::{Files, HeldFile, Traffic};
pub use gguf::Error;
pub use gguf_store::Progress;
pub use model::{Opened, open};
pub use outputs::overwrite;
pub use text::read_text;
pub use threads::on_threads;
