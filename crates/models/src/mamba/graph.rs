//! Computation graph of Mamba and FalconMamba, and the layers that Mamba 2 shares.

use gguf::Finding;
use gguf_graph::{NormKind, ValueId};

use crate::blocks::{Decoder, SsmSizes, finish};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Epsilon of FalconMamba's norms of time step, B and C, which has no key.
const INNER_EPSILON: f32 = 1e-6;

/// Builds a model of Mamba layers; `ssm.dt_b_c_rms` tells whether time step, B and C are
/// normalized.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let has_norms = builder.hparams.bool(key::SSM_DT_B_C_RMS)?;
    let norm = Norm { kind: NormKind::Rms, epsilon: INNER_EPSILON };
    let inner_norm = has_norms.then_some(norm);
    layers(builder, |builder, x, ssm, _| ssm.mamba1(builder, x, inner_norm))
}

/// Builds a model whose layers are a norm, `mixer` and the residual sum.
pub(crate) fn layers<'m>(
    builder: &mut Builder<'m>,
    mixer: impl Fn(&mut Builder<'m>, ValueId, SsmSizes, Norm) -> Result<ValueId, Finding>,
) -> Result<(), Finding> {
    let ssm = SsmSizes::of(builder)?;
    let norm = Norm::rms(builder)?;
    let mut x = builder.embedding()?;
    for layer in 0..builder.hparams.u64(key::BLOCK_COUNT)? {
        builder.set_layer("blk.", Some(layer));
        let normed = builder.norm(x, "attn_norm", norm);
        let mixed = mixer(builder, normed, ssm, norm)?;
        x = builder.add(x, mixed);
    }
    builder.set_layer("", None);
    finish(builder, x, &Decoder::without_rope(norm))
}
