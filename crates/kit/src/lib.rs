//! Facade of the toolkit for front ends: typed options in, typed reports out.
//!
//! The command line, the viewer and the Python module parse their input, call a function of this crate, and show the
//! result. A source string names a model ([`open`]): a file, a directory, any shard, a URL, `hf:org/repo`,
//! `s3://bucket/key`. Long work reports to a [`Progress`], which can cancel it, and runs on the threads of the current
//! rayon pool ([`on_threads`]).
//!
//! | to | see |
//! |----|-----|
//! | inspect a model | [`open`], [`summary`], [`memory`], [`values`], [`name`], [`tokens`] |
//! | find and repair faults | [`check`], [`verify`] |
//! | sign and verify files | [`signature`] |
//! | edit metadata, change the byte order | [`edit`], [`key_value`], [`endian`] |
//! | encode and decode arrays | [`codec`] |
//! | run a model | [`run`], [`generate`](generate::generate), [`draft`], [`prompt_cache`], [`embed`](embed::embed), [`transcribe`], [`bench`](bench::bench) |
//! | evaluate a model | [`eval`], [`quality`], [`sensitivity`] |
//! | choose a file or type for a machine | [`recommend`](recommend::recommend) |
//! | write the card of a repository | [`card`](card::card) |
//! | serialize a report | [`json`] |
//! | convert or quantize a model | [`convert`], [`checkpoint`], [`quantize`], [`calibration_text`](calibration_text::calibration_text) |
//!
//! ```
//! # fn main() -> Result<(), gguf_kit::Error> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("model.gguf");
//! # let mut draft = gguf::RawHeader::default();
//! # draft.metadata.set("general.architecture", "llama");
//! # std::fs::write(&path, gguf::write_header(&gguf::Header::new(draft)?)?).unwrap();
//! # let source = path.to_str().unwrap();
//! let opened = gguf_kit::open(source)?;
//! let summary = gguf_kit::summary::Summary::of(opened.model());
//! assert_eq!(summary.architecture.as_deref(), Some("llama"));
//! # Ok(())
//! # }
//! ```

pub mod bench;
pub mod calibration_text;
pub mod card;
pub mod check;
pub mod checkpoint;
pub mod convert;
pub mod draft;
pub mod edit;
pub mod embed;
pub mod eval;
mod files;
pub mod generate;
pub mod json;
pub mod logits;
pub mod memory;
mod model;
pub mod name;
mod outputs;
pub mod prompt_cache;
pub mod quality;
pub mod quantize;
pub mod recommend;
pub mod report;
pub mod run;
pub mod sbom;
pub mod sensitivity;
pub mod signature;
mod tensor_digest;
mod threads;
pub mod tokens;
pub mod transcribe;
pub mod verify;

pub use files::{Files, HeldFile, Traffic, file_digests};
pub use gguf::Error;
pub use gguf_check::key_value;
pub use gguf_inspect::{file_map, summary, values};
pub use gguf_pipeline::codec;
pub use gguf_remote::redact;
pub use gguf_runtime::npy;
pub use gguf_store::{Progress, endian, read_text, scratch};
pub use model::{Opened, open, open_partial};
pub use outputs::overwrite;
pub use threads::{on_threads, usable_threads};
