//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Attend, Decoder, Windows, attention, bounded_network, decoder, experts};
use crate::op::{Function, GateFunction, Gating, NormKind};
use crate::rotation::{Factors, Pairs, Rotation};

/// Arcee's Trinity. Layers without a window do not rotate.
pub(super) fn afmoe(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size("embedding_length")? as f32;
    let mut family = Decoder {
        windows: Windows::AllButLast(4),
        rotation: None,
        embedding_scale: width.sqrt(),
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}

/// Layers with a window do not stretch positions.
pub(super) fn mellum(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(4), ..Decoder::gated(builder, Pairs::Halves)? };
    family.window_rotation = family.window_rotation.map(Rotation::plain);
    decoder(builder, &family)
}

/// Layers without a window do not rotate. What goes into gates of experts is bounded.
pub(super) fn maple(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        rotation: None,
        network: |builder, x, layer, decoder| {
            let mut routing = decoder.routing;
            if let Some(limit) = builder.limit("swiglu_clamp_exp", layer)? {
                routing.function = GateFunction::Bounded { function: Function::Silu, limit };
            }
            experts(builder, x, layer, routing)
        },
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    decoder(builder, &family)
}

/// Spark X2.5.
pub(super) fn spark(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family =
        Decoder { function: Function::GeluTanh, ..Decoder::gated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}

/// Layers with a window do not stretch positions, the others do it without rounding.
pub(super) fn plamo3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(8), ..Decoder::gated(builder, Pairs::Halves)? };
    family.window_rotation = family.window_rotation.map(Rotation::plain);
    family.rotation = family.rotation.map(Rotation::unrounded);
    decoder(builder, &family)
}

/// What attention gives may have a factor.
pub(super) fn mimo2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        attention: |builder, x, _, attend| {
            let attended = attention(builder, x, &attend)?;
            let scale = builder.factor("attention.value_scale")?;
            Ok(builder.scale(attended, scale))
        },
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}

/// Of heads of layers without a window half of what the key says rotates. What comes out of gates is
/// bounded in some layers.
pub(super) fn step35(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { network: bounded_network, ..Decoder::gated(builder, Pairs::Halves)? };
    if let Some(rotation) = &mut family.rotation {
        rotation.count /= 2;
    }
    family.window_rotation =
        family.window_rotation.map(|rotation| Rotation { factors: Factors::None, ..rotation });
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    decoder(builder, &family)
}

/// Gates of attention by softplus. Layers with a window do not stretch positions.
pub(super) fn laguna(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        windows: Windows::AllButFirst(4),
        attention: |builder, x, _, mut attend: Attend| {
            attend.gate = Function::Softplus;
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    family.window_rotation = family.window_rotation.map(Rotation::plain);
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    decoder(builder, &family)
}

/// Embeddings are normed. Layers without a window do not rotate. Norms behind a part have another
/// epsilon.
pub(super) fn muse_glimmer(builder: &mut Builder<'_>) -> Result<(), Finding> {
    /// No key tells it.
    const EPSILON: f32 = 1e-8;
    let behind = Norm { kind: NormKind::MeanSquare, epsilon: EPSILON };
    let family = Decoder {
        windows: Windows::AllButLast(4),
        rotation: None,
        logit_scale: builder.factor("logit_scale")?,
        norms_embedding: true,
        norm_behind: Some(behind),
        ..Decoder::gated(builder, Pairs::Neighbours)?
    };
    decoder(builder, &family)
}
