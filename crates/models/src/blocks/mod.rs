//! Building blocks of graphs that architectures share, by their names in the literature.

mod attention;
mod cross_attention;
mod decoder;
mod drafts;
mod ffn;
mod gated_delta_net;
mod hyper_connections;
mod moe;
mod per_layer_embedding;
mod pooling;
mod rope;
mod shared;
mod sliding_window;
mod ssm;
mod streams;
mod whole_model;

pub(crate) use attention::{
    Attend, Heads, Temperature, attend_in, attend_qkv, attend_to, attention, attention_output,
    head_norm, project_qkv,
};
pub(crate) use cross_attention::{cross_attention, store_cross_attention};
pub(crate) use decoder::{
    Decoder, add_outputs, add_shared_expert, attend, clamped_activations, clamped_ffn, embedding,
    ffn, ffn_with, finish, layer, layer_of, layers, normed,
};
pub(crate) use drafts::draft_embedding;
pub(crate) use ffn::feed_forward;
pub(crate) use gated_delta_net::{
    DecayBound, kimi_delta_attention, l2_normed_heads, repeated, short_convolution,
};
pub(crate) use hyper_connections::HyperConnections;
pub(crate) use moe::{Routing, experts, experts_by, scored_experts};
pub(crate) use per_layer_embedding::{add_per_layer_input, per_layer_inputs};
pub(crate) use pooling::pooled;
pub(crate) use rope::{apply_rope, rope, window_rope, yarn_attention_factor};
pub(crate) use shared::{Shared, shared_attention};
pub(crate) use sliding_window::{WindowPattern, window};
pub(crate) use ssm::{SsmSizes, is_state_space};
pub(crate) use streams::{
    concatenated, mean_of_groups, mixing_weights, share, stream_count, weighted_sum,
};
pub(crate) use whole_model::decoder;
