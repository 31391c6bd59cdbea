//! Nanbeige 4.2: a looped transformer, which runs its layers `num_loops` times.
//!
//! - Attention: GQA.
//! - RoPE: interleaved layout, as in llama; Llama 3 scaling by the tensor `rope_freqs`.
//! - Norms: RMS pre-norm; the output norm also runs between loops, unless `skip_loop_final_norm` is
//!   set.
//! - FFN: SwiGLU.
//! - The KV cache of each loop is separate, as every loop adds operations to the graph.
//!
//! Class `NanbeigeForCausalLM`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
