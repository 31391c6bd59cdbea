//! Which tensor of a model gets which type, and what that costs.
//!
//! A [`recipe`] chooses types by the named mixes, a [`budget`] by a size; an [`imatrix`] says how much
//! each column matters, [`importance`] brings that to the tensors of a job. [`plan()`] makes a job for
//! the pipeline, [`estimate`] says how long it takes, [`verify`] derives tensors again and compares.

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
pub mod verify;

pub use decision::{Decision, decide, describe};
pub use float_type::float_type;
pub use plan::{Options, Quantization, give_types, plan, set_overrides};
