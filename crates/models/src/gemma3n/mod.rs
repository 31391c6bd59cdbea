//! Gemma 3n by Google: AltUp, LAuReL, per-layer embeddings and activation sparsity.
//!
//! The residual stream is `altup.num_inputs` streams (AltUp, arXiv 2301.13310): a layer computes
//! the active one, predicts the others and corrects them by the prediction error. Beside attention
//! runs a low-rank residual (LAuReL, arXiv 2411.07501). Attention is grouped-query with RMS
//! QK-norm, a norm of values without weights, softmax scale 1, a sliding window in four of five
//! layers, and a KV cache that the last `attention.shared_kv_layers` layers share with earlier
//! ones. RoPE in NeoX layout. Sandwich RMS norms. GeGLU whose gate is thresholded in the first
//! layers (mean plus a multiple of the standard deviation). Each layer receives a per-layer input
//! embedding. Sources: class `Gemma3nForCausalLM`, llama.cpp's `src/models/gemma3n.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
