//! PLaMo 2 of Preferred Networks: a hybrid of state-space models and attention.
//!
//! - Layers: attention in the middle of each `mamba_step` layers, an SSM in the others.
//! - Attention: GQA with a fused QKV matrix and QK-norm with weights for each head.
//! - SSM: heads as in Mamba 2, while time step, B and C are projections of the convolved input as
//!   in Mamba 1; all three are normalized.
//! - RoPE: NeoX layout, without scaling.
//! - Norms: RMS sandwich norms, stored as offsets from 1, 1/5 and 1/5^1.5.
//! - FFN: SwiGLU, with gate and up projection in one matrix.
//!
//! Class `Plamo2ForCausalLM`; `plamo2.cpp` in llama.cpp.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
