//! Mamba, FalconMamba and Mamba 2.

use gguf::Finding;
use gguf_graph::{NormKind, ValueId};

use crate::blocks::{Decoder, StateSpace, finish};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Epsilon of the norms inside of FalconMamba's layers, for which files have no key: that of all of
/// its models.
const INNER_EPSILON: f32 = 1e-6;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let has_norms = builder.hyper.bool(key::SSM_DT_B_C_RMS)?;
    let norm = Norm { kind: NormKind::Rms, epsilon: INNER_EPSILON };
    let inner_norm = has_norms.then_some(norm);
    layers(builder, |builder, x, space, _| space.first(builder, x, inner_norm))
}

/// A model of such layers: `mixer` is what stands between the norm and the sum.
pub(crate) fn layers<'m>(
    builder: &mut Builder<'m>,
    mixer: impl Fn(&mut Builder<'m>, ValueId, StateSpace, Norm) -> Result<ValueId, Finding>,
) -> Result<(), Finding> {
    let space = StateSpace::of(builder)?;
    let norm = Norm::rms(builder)?;
    let mut x = builder.embedding()?;
    for layer in 0..builder.hyper.u64(key::BLOCK_COUNT)? {
        builder.at("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = mixer(builder, normed, space, norm)?;
        x = builder.add(x, mixed);
    }
    builder.at("", None);
    finish(builder, x, &Decoder::plain(norm))
}
