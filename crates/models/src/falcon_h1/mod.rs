//! Falcon H1 (arXiv 2507.22448) by the Technology Innovation Institute: attention and Mamba 2 in
//! parallel.
//!
//! Every layer adds the outputs of grouped-query attention and of a Mamba 2 mixer, both of the same
//! normalized input. RoPE in NeoX layout. RMS pre-norms; the norm of the mixer's output is
//! optional. SwiGLU FFN. The muP multipliers of config.json are multiplied into the weights on
//! conversion. The tensor name of the FFN norm is `ffn_norm` without suffix. Sources: class
//! `FalconH1ForCausalLM`, llama.cpp's `src/models/falcon-h1.cpp`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
