//! Legacy GGML files, which predate GGUF: GGML, GGMF, GGJT and GGCC.
//!
//! A [`LegacyModel`] is an open legacy model. [`LegacyModel::plan`] returns a job, which the
//! [pipeline](gguf_pipeline) runs as for any other source. Values that the files do not store come
//! from a folder with the original configuration and tokenizer, or from [`Overrides`].
//!
//! ```no_run
//! use std::path::Path;
//!
//! use gguf_legacy::{LegacyModel, LegacyOptions, is_legacy};
//! use gguf_store::{Existing, Overwrite};
//!
//! let path = Path::new("ggml-model-q4_0.bin");
//! assert!(is_legacy(path)?);
//! let options = LegacyOptions { metadata_dir: Some("llama-7b".into()), ..LegacyOptions::default()
//! };
//! let conversion = LegacyModel::open(path, &options)?.plan(&options)?;
//! for change in &conversion.changes {
//!     println!("{}: {} to {}", change.name, change.from, change.to);
//! }
//! let overwrite = Overwrite::new(Existing::Refuse);
//! conversion.job.write(Path::new(&conversion.file_name), &overwrite, &())?;
//! # Ok::<(), gguf::Error>(())
//! ```

mod blocks;
mod container;
mod conversion;
mod cursor;
mod directory;
mod file;
mod header;
mod hyperparameters;
mod merges;
mod model;
mod names;
mod overrides;
mod parts;
mod starcoder;
mod target_types;
mod tensor;
mod tokenizer_keys;
mod vocabulary;
mod whisper_tokens;

pub use container::is_legacy;
pub use conversion::Conversion;
pub use model::{LegacyModel, LegacyOptions};
pub use overrides::Overrides;
pub use parts::part_paths;
pub use target_types::{Change, Fidelity};
