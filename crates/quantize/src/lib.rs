//! Selection of the type of each tensor, and importance weights for its encoder.
//!
//! - A [`recipe`] assigns types by a preset of llama.cpp's quantizer and a [`budget`] by a size
//!   limit; [`plan()`] turns either into a job for the [pipeline](gguf_pipeline), and [`estimate`]
//!   predicts how long the job takes.
//! - An [`imatrix`] holds the importance of columns; [`importance`] assigns it to the tensors of a
//!   job.
//! - A [`sensitivity`] holds the KL divergence of each type of each tensor, for use by a budget.
//! - [`verify`] derives the tensors of a file again and compares.
//!
//! ```
//! use gguf::TensorType;
//! use gguf_quantize::recipe::{Preset, Target};
//! use gguf_quantize::{QuantizeOptions, plan};
//! use gguf_store::{Existing, Model, Overwrite};
//! # use gguf::{ByteOrder, Metadata, Shape};
//! # use gguf_pipeline::{Content, Item, Job, Tensor};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let (input, output) = &(directory.path().join("f32.gguf"), directory.path().join("q4.gguf"));
//! # let mut metadata = Metadata::new();
//! # metadata.set("general.architecture", "llama");
//! # metadata.set("llama.block_count", 1u32);
//! # let tensor = Tensor {
//! #     name: "blk.0.ffn_up.weight".into(),
//! #     shape: Shape::new(&[256, 2]).unwrap(),
//! #     stored_type: TensorType::F32,
//! #     content: Content::Values((0..512).map(|i| (i as f32).sin()).collect()),
//! # };
//! # let items = vec![Item::new(tensor, TensorType::F32)];
//! # let job = Job { metadata, items, check_finite: true, order: ByteOrder::Little };
//! # job.write(input, &Overwrite::new(Existing::Refuse), &())?;
//! let model = Model::open(input)?;
//! let quantization = plan(&model, Target::Preset(Preset::Q4_K_M), &QuantizeOptions::default())?;
//! quantization.job.write(output, &Overwrite::new(Existing::Refuse), &())?;
//!
//! let quantized = Model::open(output)?;
//! assert_eq!(quantized.tensors()[0].info.tensor_type, TensorType::Q4_K);
//! # Ok(())
//! # }
//! ```

pub mod budget;
mod decision;
pub mod estimate;
mod float_type;
pub mod imatrix;
mod imatrix_choice;
pub mod importance;
mod knapsack;
mod plan;
mod prune;
pub mod recipe;
pub mod sensitivity;
pub mod verify;

pub use decision::{Decision, decide, describe};
pub use float_type::float_type;
pub use imatrix_choice::ImatrixChoice;
pub use plan::{Quantization, QuantizeOptions, assign_types, plan, set_overrides};
