//! Parts of layers that many architectures share.

mod attention;
mod cross;
mod decoder;
mod delta;
mod experts;
mod feed_forward;
mod hyper;
mod per_layer;
mod pooling;
mod rotation;
mod shared;
mod state_space;
mod streams;
mod window;

pub(crate) use attention::{
    Attend, Heads, Sharpening, attend_to, attended, attention, attention_output,
    queries_keys_values,
};
pub(crate) use cross::{cross_attention, store_cross};
pub(crate) use decoder::{
    Decoder, attend, beside_shared, bounded_gates, bounded_network, decoder, embedding, finish,
    layer, layer_of, layers, network, network_by, normed, said,
};
pub(crate) use delta::{Bound, delta_attention, repeated, short_convolution, unit_heads};
pub(crate) use experts::{Routing, experts, experts_by, scored_experts};
pub(crate) use feed_forward::feed_forward;
pub(crate) use hyper::HyperConnections;
pub(crate) use per_layer::{inputs_of_layers, with_input};
pub(crate) use pooling::pooled;
pub(crate) use rotation::{rotation, sharper, turned, window_rotation};
pub(crate) use shared::{Shared, shared_attention};
pub(crate) use state_space::StateSpace;
pub(crate) use streams::{joined, mean_of_parts, share, shares_of, stream_count, sum_of_shares};
pub(crate) use window::{Windows, window};
