//! Kimi Linear, Kimi K3 and Ling 3: delta attention in most layers, attention to what is kda_mla_decoder
//! in the others.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Bound, bounded_network, decoder};
use crate::graph::Builder;
use crate::kimi_linear::graph::{kda_mla_decoder, mixer};
use crate::schema::key;

/// Decays are bounded, and heads of attention have gates. Models that see rotate other pairs.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let sections = builder.hyper.stated(key::ROPE_DIMENSION_SECTIONS);
    let mut sections =
        sections.and_then(|all| all.as_array()).into_iter().flat_map(|all| all.iter());
    let sees = sections.any(|section| section.to_i64().is_some_and(|section| section != 0));
    let mut family = kda_mla_decoder(builder)?;
    if let Some(rotation) = family.rotation.as_mut().filter(|_| sees) {
        rotation.layout = RopeLayout::Neox;
    }
    family.routing.normalize = false;
    family.network = bounded_network;
    family.attention = |builder, x, layer, attend| {
        let least = builder.hyper.f32(key::KDA_GATE_LOWER_BOUND)?;
        mixer(builder, x, layer, attend, Some(Bound { least, sign: 1.0 }))
    };
    decoder(builder, &family)
}
