//! Conversion of checkpoints and LoRA adapters to GGUF, and back.
//!
//! - [`hf`] plans the conversion of a Hugging Face checkpoint, or of its vision and audio encoders to an
//!   mmproj file, [`single_file`] that of one weight file without a configuration. The crate
//!   `gguf-models` has the converters of the classes, [`vocab`] reads the tokenizer, [`model_card`] the
//!   model card.
//! - [`lora`] converts, merges and extracts adapters.
//! - [`export`] writes a checkpoint from a GGUF file.
//! - [`provenance`] records the source in the output.
//!
//! A plan is a job of the [pipeline](gguf_pipeline); tensor data is read only when the job runs.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use gguf_checkpoint::Checkpoint;
//! use gguf_convert::hf;
//! use gguf_quantize::recipe::{Preset, Target};
//! use gguf_store::{Existing, Overwrite};
//!
//! let dir = Path::new("Llama-3.2-1B");
//! let checkpoint = Checkpoint::open(dir)?;
//! let options = hf::HfOptions { outtype: Some(Target::Preset(Preset::Q4_K_M)), ..Default::default() };
//! let conversion = hf::plan(dir, &checkpoint, &options)?;
//! for note in &conversion.notes {
//!     eprintln!("{note}");
//! }
//! let overwrite = Overwrite::new(Existing::Refuse);
//! conversion.job.write(Path::new(&conversion.file_name), &overwrite, &())?;
//! # Ok::<(), gguf::Error>(())
//! ```

pub mod export;
pub mod hf;
pub mod lora;
pub mod model_card;
pub mod provenance;
pub mod single_file;
pub mod vocab;

pub use gguf_models::convert::{architectures_of_classes, classes};
pub use gguf_models::mmproj::encoder_classes;
/// Patterns of tensor names, in which `{}` matches a number.
pub mod names {
    pub use gguf_models::convert::tensor_names::{captures, filled};
}
