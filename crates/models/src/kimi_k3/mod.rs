//! Text model of Kimi K3 (Moonshot AI; class `KimiK3ForConditionalGeneration`): architecture
//! `kimi-k3`.
//!
//! As `kimi-linear`: most layers are Kimi Delta Attention (KDA, gated delta rule), the others
//! multi-head latent attention (MLA) without positions (NoPE), with an optional sigmoid gate. RMS
//! pre-norm.
//!
//! Attention residuals: each attention, each FFN and the LM head read a softmax-weighted sum of the
//! residual stream and of the streams stored every `attn_res_block_size` layers; the scores come
//! from one vector per place. MoE with a sigmoid router, SiTU activation and a shared expert;
//! routed experts may work in a narrower latent space (`expert_latent_length`).

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
