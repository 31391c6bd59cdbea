//! Command R, Command R7B and North Mini: attention and feed-forward share one norm.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{Decoder, Windows, attention, decoder, network, rotation};
use crate::command_r::graph::usual;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// With experts, and those that all tokens share count half. Dense layers rotate, whatever they
/// see.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        windows: Windows::AllButFirst(4),
        attention: |builder, x, layer, mut attend| {
            if layer < builder.hyper.u64(key::LEADING_DENSE_BLOCK_COUNT)? {
                attend.rotation = rotation(builder, RopeLayout::Interleaved)?;
            }
            attention(builder, x, &attend)
        },
        network: |builder, x, layer, decoder| {
            let made = network(builder, x, layer, decoder)?;
            let has_shared = builder.has("ffn_up_shexp.weight");
            Ok(builder.scale(made, if has_shared { 0.5 } else { 1.0 }))
        },
        rotation: None,
        ..usual(builder)?
    };
    if builder.hyper.stated(key::ATTENTION_LAYER_NORM_RMS_EPSILON).is_some() {
        family.norm = Norm::rms(builder)?;
    }
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    decoder(builder, &family)
}
