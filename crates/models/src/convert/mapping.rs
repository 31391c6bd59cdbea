//! The result of mapping a checkpoint tensor to GGUF.

use gguf_pipeline::Step;

/// The GGUF tensors that a checkpoint tensor maps to.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapping {
    /// One tensor in most cases; several where the checkpoint stores them interleaved.
    Tensors(Vec<MappedTensor>),
    /// Vectors that are not checkpoint tensors (names and values), then the tensors.
    WithVectors(Vec<(String, Vec<f32>)>, Vec<MappedTensor>),
    /// The tensor of this name, unless another checkpoint tensor has become it already. Checkpoints may
    /// store tied weights more than once.
    Shared(&'static str),
    /// Nothing: a buffer that runtimes compute themselves.
    Dropped,
    /// Nothing, provided that all elements are zero: GGUF has no place for it.
    DroppedIfZero,
    /// The converter does not know the tensor.
    Unknown,
}

impl Mapping {
    /// Returns the mapping to one tensor, after these steps.
    pub fn one(name: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        Self::Tensors(vec![MappedTensor { name: name.into(), steps: steps.into(), slot: None }])
    }

    /// Returns the mapping to one slot of a stacked tensor, without a change of its elements.
    pub fn slot(name: String, slot: ExpertSlot) -> Self {
        Self::Tensors(vec![MappedTensor { name, steps: Vec::new(), slot: Some(slot) }])
    }
}

/// A GGUF tensor, or one slot of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedTensor {
    /// GGUF name of the whole tensor.
    pub name: String,
    /// Steps that the checkpoint tensor goes through, in order.
    pub steps: Vec<Step>,
    /// Slot of a stacked tensor; `None` for a whole tensor.
    pub slot: Option<ExpertSlot>,
}

/// Slot of a stacked tensor: the matrix of one expert among those of all, or the norm of one head.
/// Slots follow one another along a new, slowest dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertSlot {
    /// Index of the slot, from 0.
    pub index: u32,
    /// Number of slots.
    pub count: u32,
}
