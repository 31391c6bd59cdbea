//! Foreign model checkpoints: weights and configurations.
//!
//! A [`Checkpoint`] is a directory of weights or a single file: safetensors or PyTorch, plain or
//! quantized. Opening it reads no weights. A tensor that GGUF cannot store as it is becomes a
//! [`gguf_store::Source`] that computes, on demand, plain elements or blocks of a type with the
//! same values. [`config`] reads `config.json`, [`json`] any JSON file beside it.
//!
//! ```
//! use gguf::TensorType;
//! use gguf_checkpoint::Checkpoint;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let dir = directory.path();
//! // A safetensors file is the length of the header, the header, and the data.
//! let table = br#"{"norm.weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}"#;
//! let data: [u8; 12] = std::array::from_fn(|i| i as u8);
//! let file = [&(table.len() as u64).to_le_bytes()[..], table, &data].concat();
//! std::fs::write(dir.join("model.safetensors"), file)?;
//!
//! let checkpoint = Checkpoint::open(dir)?;
//! let tensor = &checkpoint.entries[0];
//! assert_eq!((&*tensor.name, tensor.tensor_type), ("norm.weight", TensorType::BF16));
//! assert_eq!(tensor.shape, [2, 3]);
//! let mut second_row = [0; 6];
//! checkpoint.files[tensor.file].source.read_at(&mut second_row, tensor.offset + 6)?;
//! assert_eq!(second_row, data[6..]);
//! # Ok(())
//! # }
//! ```

mod cast;
mod checkpoint;
pub mod config;
mod dtype;
mod floats;
pub mod json;
mod layout;
pub mod modules;
mod params;
mod pytorch;
mod quantized;
mod raw;
mod rows;
mod safetensors;
mod strided;
mod summary;
mod tensor_parallel;
mod weight_file;
mod with_path;
mod wrapped_names;

pub use checkpoint::{Checkpoint, Entry, Opener};
pub use summary::WeightsSummary;
pub use weight_file::WeightFile;
