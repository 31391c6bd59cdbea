//! Parts of layers that many architectures share.

mod attention;
mod cross;
mod decoder;
mod delta;
mod experts;
mod feed_forward;
mod pooling;
mod rotation;
mod state_space;
mod window;

pub(crate) use attention::{
    Attend, Heads, Sharpening, attend_to, attended, attention, queries_keys_values,
};
pub(crate) use cross::{cross_attention, store_cross};
pub(crate) use decoder::{Decoder, attend, decoder, finish, layers, network};
pub(crate) use delta::{Bound, delta_attention, repeated, short_convolution, unit_heads};
pub(crate) use experts::{Routing, experts, routed};
pub(crate) use feed_forward::feed_forward;
pub(crate) use pooling::pooled;
pub(crate) use rotation::{rotation, sharper, window_rotation};
pub(crate) use state_space::StateSpace;
pub(crate) use window::window;
