//! The transformer that most architectures are, with what differs between them as data.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{
    Attend, Heads, Routing, attention, experts, feed_forward, pooled, rotation, window,
    window_rotation,
};
use crate::op::{Function, GateFunction, Gating, Index, Mask, Op, PositionBias};
use crate::raw::{OutputKind, ValueId};
use crate::rotation::{Pairs, Rotation};

/// What differs between transformers. Which matrices, biases and norms a layer has, its tensors say.
pub(crate) struct Decoder {
    pub norm: Norm,
    /// Whether norms that have no weights are norms all the same.
    pub weightless_norms: bool,
    /// The norm before the feed-forward network.
    pub network_norm: &'static str,
    /// The norm before the output matrix.
    pub output_norm: &'static str,
    /// What is in the middle of feed-forward networks.
    pub function: Function,
    /// How layers rotate queries and keys.
    pub rotation: Option<Rotation>,
    /// How those do that see a window only.
    pub window_rotation: Option<Rotation>,
    /// Of so many layers all but the last see a window only, if the model has one; of 0 all do.
    pub window_period: u64,
    pub bias: PositionBias,
    /// The attention of a layer to its normed input.
    pub attention: Attending,
    /// Whether attention and feed-forward read the same input.
    pub parallel: bool,
    /// Factor of the embedding.
    pub embedding_scale: f32,
    /// Factor of what attention and feed-forward add.
    pub residual_scale: f32,
    /// Factor of the attention scores, if it is not one over the root of the length of a key.
    pub attention_scale: Option<f32>,
    /// Factor of the logits.
    pub logit_scale: f32,
    /// How experts are chosen, in layers that have some.
    pub routing: Routing,
}

/// What makes the attention of a layer, as the layer usually attends.
pub(crate) type Attending =
    fn(&mut Builder<'_>, x: ValueId, layer: u64, attend: Attend) -> Result<ValueId, Finding>;

/// A whole model: embedding, layers, output.
pub(crate) fn decoder(builder: &mut Builder<'_>, decoder: &Decoder) -> Result<(), Finding> {
    let embedded = builder.embedding()?;
    let mut x = builder.scale(embedded, decoder.embedding_scale);
    if let Some(table) = builder.find("position_embd.weight") {
        let positions = builder.op(Op::Embed { table, index: Index::Position });
        x = builder.add(x, positions);
    }
    if decoder.output_norm != EMBEDDING_NORM && builder.has_norm(EMBEDDING_NORM) {
        x = builder.norm(x, EMBEDDING_NORM, decoder.norm);
    }
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        x = self::layer(builder, x, layer, decoder)?;
    }
    builder.at("", None);
    finish(builder, x, decoder)
}

/// Layers, without those behind the last that guess further tokens.
pub(crate) fn layers(builder: &Builder<'_>) -> Result<u64, Finding> {
    let guessing = builder.hyper.u64("nextn_predict_layers")?;
    Ok(builder.hyper.u64("block_count")?.saturating_sub(guessing))
}

fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    // Where there are two norms before attention and feed-forward, the second is that of attention.
    let has_two = builder.has_norm("attn_norm_2");
    let attention_norm = if has_two { "attn_norm_2" } else { "attn_norm" };
    let normed = normed(builder, x, attention_norm, decoder);
    let attend = attend(builder, layer, decoder)?;
    let mut attended = (decoder.attention)(builder, normed, layer, attend)?;
    if decoder.network_norm != POST_NORM && builder.has_norm(POST_NORM) {
        attended = builder.norm(attended, POST_NORM, decoder.norm);
    }
    let attended = builder.scale(attended, decoder.residual_scale);
    if decoder.parallel {
        let input = match ["ffn_norm", "attn_norm"] {
            [own, _] if builder.has_norm(own) => builder.norm(x, own, decoder.norm),
            [_, first] if has_two => builder.norm(x, first, decoder.norm),
            _ => normed,
        };
        let fed = network(builder, input, layer, decoder)?;
        let fed = builder.scale(fed, decoder.residual_scale);
        let sum = builder.add(x, attended);
        return Ok(builder.add(sum, fed));
    }
    let x = builder.add(x, attended);
    let normed = self::normed(builder, x, decoder.network_norm, decoder);
    let mut fed = network(builder, normed, layer, decoder)?;
    if builder.has_norm("post_ffw_norm") {
        fed = builder.norm(fed, "post_ffw_norm", decoder.norm);
    }
    let fed = builder.scale(fed, decoder.residual_scale);
    Ok(builder.add(x, fed))
}

const EMBEDDING_NORM: &str = "token_embd_norm";
const POST_NORM: &str = "post_attention_norm";

/// How a layer attends.
pub(crate) fn attend(
    builder: &Builder<'_>,
    layer: u64,
    decoder: &Decoder,
) -> Result<Attend, Finding> {
    let heads = Heads::of(builder, layer)?;
    let cached = builder.hyper.bool("attention.causal")?;
    let window = window(builder, layer, decoder.window_period)?;
    let stated_scale = builder.known("attention.scale")?.filter(|scale| *scale != 0.0);
    let scale = stated_scale.or(decoder.attention_scale);
    // One section of the specification spells two of the keys in another way.
    let clamp = builder.known("attention.clamp_kqv")?;
    let clamp = clamp.or(builder.known("attention.clip_kqv")?).filter(|bound| *bound > 0.0);
    let slopes =
        [builder.known("attention.max_alibi_bias")?, builder.known("attention.alibi_bias_max")?];
    let slopes = slopes.into_iter().flatten().find(|max| *max > 0.0);
    Ok(Attend {
        heads,
        scale: scale.unwrap_or(1.0 / (heads.key_len as f32).sqrt()),
        mask: match window {
            Some(len) if cached => Mask::Window(len),
            Some(len) => Mask::Around(len),
            None if cached => Mask::Causal,
            None => Mask::All,
        },
        rotation: match window {
            Some(_) => decoder.window_rotation.clone(),
            None => decoder.rotation.clone(),
        },
        norm: decoder.norm,
        turned_first: false,
        sharpening: None,
        bias: slopes.map_or(decoder.bias, |max| PositionBias::Slopes { max }),
        soft_cap: builder.known("attn_logit_softcapping")?.filter(|cap| *cap > 0.0),
        clamp,
        cached,
    })
}

/// The feed-forward network of a layer, or its experts.
pub(crate) fn network(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    if !builder.has("ffn_gate_inp.weight") {
        return feed_forward(builder, x, decoder.function, "");
    }
    let routed = experts(builder, x, layer, decoder.routing)?;
    if !builder.has("ffn_up_shexp.weight") {
        return Ok(routed);
    }
    let mut shared = feed_forward(builder, x, decoder.function, "_shexp")?;
    if builder.has("ffn_gate_inp_shexp.weight") {
        let gate = builder.product(x, "ffn_gate_inp_shexp")?;
        let gate = builder.op(Op::Activate { x: gate, function: Function::Sigmoid });
        shared = builder.op(Op::Multiply { a: shared, b: gate });
    }
    Ok(builder.add(routed, shared))
}

/// The last norm and the output matrix, of the rows that are asked for.
pub(crate) fn finish(
    builder: &mut Builder<'_>,
    x: ValueId,
    decoder: &Decoder,
) -> Result<(), Finding> {
    let x = builder.op(Op::Select { x });
    let hidden = normed(builder, x, decoder.output_norm, decoder);
    builder.output(OutputKind::Hidden, hidden);
    pooled(builder, hidden)?;
    let name = if builder.has("output.weight") { "output" } else { "token_embd" };
    let mut logits = builder.product(hidden, name)?;
    logits = builder.scale(logits, decoder.logit_scale);
    if let Some(cap) = builder.known("final_logit_softcapping")?.filter(|cap| *cap > 0.0) {
        logits = builder.op(Op::SoftCap { x: logits, cap });
    }
    builder.output(OutputKind::Logits, logits);
    Ok(())
}

/// `x` normed by these weights, or as it is where the model does not have them.
fn normed(builder: &mut Builder<'_>, x: ValueId, name: &str, decoder: &Decoder) -> ValueId {
    let is_norm = decoder.weightless_norms || builder.has_norm(name);
    if is_norm { builder.norm(x, name, decoder.norm) } else { x }
}

impl Decoder {
    /// What llama is: root mean square norms, rotation, a gate with SiLU; experts by softmax over all,
    /// the weights of those chosen made to sum to 1.
    pub fn gated(builder: &mut Builder<'_>, pairs: Pairs) -> Result<Self, Finding> {
        let norm = Norm::mean_square(builder)?;
        Self { function: Function::Silu, ..Self::plain(norm) }.rotating(builder, pairs)
    }

    /// Norms with a mean, rotation, no gates.
    pub fn rotated(builder: &mut Builder<'_>, pairs: Pairs) -> Result<Self, Finding> {
        let norm = Norm::variance(builder)?;
        Self::plain(norm).rotating(builder, pairs)
    }

    /// The same, but queries and keys are rotated.
    pub fn rotating(self, builder: &mut Builder<'_>, pairs: Pairs) -> Result<Self, Finding> {
        let rotation = rotation(builder, pairs)?;
        Ok(Self { rotation, window_rotation: window_rotation(builder, pairs)?, ..self })
    }

    /// A transformer without anything special.
    pub fn plain(norm: Norm) -> Self {
        Self {
            norm,
            weightless_norms: false,
            network_norm: "ffn_norm",
            output_norm: "output_norm",
            function: Function::Gelu,
            rotation: None,
            window_rotation: None,
            window_period: 0,
            bias: PositionBias::None,
            attention: |builder, x, _, attend| attention(builder, x, &attend),
            parallel: false,
            embedding_scale: 1.0,
            residual_scale: 1.0,
            attention_scale: None,
            logit_scale: 1.0,
            routing: Routing {
                gating: Gating::Softmax,
                normalize: true,
                weigh_input: false,
                function: GateFunction::Plain(Function::Silu),
            },
        }
    }
}
