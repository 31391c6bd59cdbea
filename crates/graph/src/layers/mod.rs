//! Parts of layers that many architectures share.

mod attention;
mod cross;
mod decoder;
mod experts;
mod feed_forward;
mod rotation;

pub(crate) use attention::{Attend, Heads, attention};
pub(crate) use cross::{cross_attention, store_cross};
pub(crate) use decoder::{Decoder, decoder, finish};
pub(crate) use experts::{Routing, experts};
pub(crate) use feed_forward::feed_forward;
pub(crate) use rotation::rotation;
