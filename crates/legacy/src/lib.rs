//! Models from before GGUF: GGML, GGMF, GGJT and GGCC files.
//!
//! A [`Legacy`] is such a model, its files open; [`Legacy::plan`] makes a job of it, from which on
//! the [pipeline](gguf_pipeline) works as for any source. What these files do not hold comes from a
//! folder of the model, or from [`Overrides`].
//!
//! ```no_run
//! use std::path::Path;
//!
//! use gguf_legacy::{Legacy, Options, is_legacy};
//! use gguf_store::{Existing, Overwrite};
//!
//! let path = Path::new("ggml-model-q4_0.bin");
//! assert!(is_legacy(path)?);
//! let options = Options { metadata_dir: Some("llama-7b".into()), ..Options::default() };
//! let conversion = Legacy::open(path, &options)?.plan(&options)?;
//! for change in &conversion.changes {
//!     println!("{}: {} to {}", change.name, change.from, change.to);
//! }
//! let overwrite = Overwrite::new(Existing::Refuse);
//! conversion.job.write(Path::new(&conversion.file_name), &overwrite, &())?;
//! # Ok::<(), gguf::Error>(())
//! ```

mod blocks;
mod choice;
mod container;
mod conversion;
mod cursor;
mod directory;
mod given;
mod header;
mod hyper;
mod merges;
mod model;
mod names;
mod parts;
mod read;
mod starcoder;
mod tensor;
mod tokens;
mod vocabulary;
mod whisper_tokens;

pub use choice::{Change, How};
pub use container::is_legacy;
pub use conversion::Conversion;
pub use given::Overrides;
pub use model::{Legacy, Options};
pub use parts::parts;
