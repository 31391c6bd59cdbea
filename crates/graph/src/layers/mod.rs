//! Parts of layers that many architectures share.

mod attention;
mod cross;
mod decoder;
mod experts;
mod feed_forward;
mod pooling;
mod rotation;
mod window;

pub(crate) use attention::{Attend, Heads, Sharpening, attend_to, attention, queries_keys_values};
pub(crate) use cross::{cross_attention, store_cross};
pub(crate) use decoder::{Decoder, decoder, finish};
pub(crate) use experts::{Routing, experts};
pub(crate) use feed_forward::feed_forward;
pub(crate) use pooling::pooled;
pub(crate) use rotation::{rotation, sharper, window_rotation};
pub(crate) use window::window;
