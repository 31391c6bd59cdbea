//! Qwen3.5 of Alibaba Cloud: the dense models, also the text model of MiniCPM-V 4.6.
//!
//! - Layers: linear attention by the gated delta rule in most, full attention in one of
//!   `full_attention_interval`.
//! - Full attention: GQA with an output gate for each query head and RMS QK-norm.
//! - Linear attention: value heads share key heads; the matrices of decay (`ssm_alpha`) and beta
//!   (`ssm_beta`) are separate.
//! - RoPE: NeoX layout on a quarter of each head, with M-RoPE sections.
//! - Norms: RMS pre-norm. FFN: SwiGLU. MTP layers come last.
//!
//! Class `Qwen3_5ForConditionalGeneration` in `transformers`; `qwen35.cpp` in llama.cpp. The graph
//! is that of `qwen3next`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
