//! Checkpoints and adapters of other programs to GGUF, and back.
//!
//! - [`hf`] plans the conversion of a Hugging Face checkpoint: a family says what each foreign tensor
//!   becomes, [`vocab`] does the tokenizer, [`general`] the model card. [`bare`] plans that of a lone
//!   file of weights.
//! - [`encoder`] plans that of what sees and hears, which goes into a file beside the model.
//! - [`lora`] converts, merges and extracts adapters; [`export`] writes a checkpoint again.
//! - [`provenance`] says in a file what it was made from.
//!
//! What is planned is a job of the [pipeline](gguf_pipeline): nothing is read before it is written.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use gguf_checkpoint::Checkpoint;
//! use gguf_convert::hf;
//! use gguf_quantize::recipe::{Mix, Target};
//! use gguf_store::{Existing, Overwrite};
//!
//! let dir = Path::new("Llama-3.2-1B");
//! let checkpoint = Checkpoint::open(dir)?;
//! let options = hf::Options { outtype: Some(Target::Mix(Mix::Q4_K_M)), ..Default::default() };
//! let conversion = hf::plan(dir, &checkpoint, &options)?;
//! for note in &conversion.notes {
//!     eprintln!("{note}");
//! }
//! let overwrite = Overwrite::new(Existing::Refuse);
//! conversion.job.write(Path::new(&conversion.file_name), &overwrite, &())?;
//! # Ok::<(), gguf::Error>(())
//! ```

pub mod bare;
pub mod encoder;
pub mod export;
pub mod general;
pub mod hf;
pub mod lora;
pub mod provenance;
pub mod vocab;

pub use gguf_models::convert::{architectures_of_classes, classes};
pub use gguf_models::mmproj::encoder_classes;
/// Patterns of tensor names, in which `{}` stands for a number.
pub mod names {
    pub use gguf_models::convert::tensor_names::{captures, filled};
}
