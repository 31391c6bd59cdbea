//! Building blocks of graphs that architectures share, by their names in the literature.

mod attention;
mod cross_attention;
mod decoder;
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

pub(crate) use attention::{
    Attend, Heads, Sharpening, attend_to, attended, attention, attention_output,
    queries_keys_values,
};
pub(crate) use cross_attention::{cross_attention, store_cross};
pub(crate) use decoder::{
    Decoder, attend, beside_shared, bounded_gates, bounded_network, decoder, embedding, finish,
    layer, layer_of, layers, network, network_by, normed, said,
};
pub(crate) use ffn::feed_forward;
pub(crate) use gated_delta_net::{Bound, delta_attention, repeated, short_convolution, unit_heads};
pub(crate) use hyper_connections::HyperConnections;
pub(crate) use moe::{Routing, experts, experts_by, scored_experts};
pub(crate) use per_layer_embedding::{inputs_of_layers, with_input};
pub(crate) use pooling::pooled;
pub(crate) use rope::{rotation, sharper, turned, window_rotation};
pub(crate) use shared::{Shared, shared_attention};
pub(crate) use sliding_window::{Windows, window};
pub(crate) use ssm::{StateSpace, is_state_space};
pub(crate) use streams::{joined, mean_of_parts, share, shares_of, stream_count, sum_of_shares};
