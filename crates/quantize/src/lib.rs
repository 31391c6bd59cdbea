//! Which tensor of a model gets which type, and what guides its encoder.
//!
//! - A [`recipe`] chooses types by the named mixes, a [`budget`] by a size; [`plan()`] makes a job
//!   for the [pipeline](gguf_pipeline) of it, and [`estimate`] says how long that takes.
//! - An [`imatrix`] says how much each column matters, [`importance`] brings that to the tensors of
//!   a job.
//! - A [`sensitivity`] says what each type of each tensor does to predictions, for a budget to go by.
//! - [`verify`] derives the tensors of a file again and compares.
//!
//! ```
//! use gguf::TensorType;
//! use gguf_quantize::recipe::{Mix, Target};
//! use gguf_quantize::{Options, plan};
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
//! let quantization = plan(&model, Target::Mix(Mix::Q4_K_M), &Options::default())?;
//! quantization.job.write(output, &Overwrite::new(Existing::Refuse), &())?;
//!
//! let quantized = Model::open(output)?;
//! assert_eq!(quantized.tensors()[0].info.tensor_type, TensorType::Q4_K);
//! # Ok(())
//! # }
//! ```

mod allocation;
pub mod budget;
mod decision;
pub mod estimate;
mod float_type;
pub mod imatrix;
pub mod importance;
mod plan;
mod prune;
pub mod recipe;
pub mod sensitivity;
pub mod verify;

pub use decision::{Decision, decide, describe};
pub use float_type::float_type;
pub use plan::{Options, Quantization, give_types, plan, set_overrides};
