//! The transformer that most architectures are, with what differs between them as data.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Attend, Heads, Routing, attention, experts, feed_forward, rotation};
use crate::op::{Function, GateFunction, Gating, Mask, Op, PositionBias};
use crate::raw::{OutputKind, ValueId};
use crate::rotation::{Pairs, Rotation};

/// What differs between transformers. Which matrices, biases and norms a layer has, its tensors say.
pub(crate) struct Decoder {
    pub norm: Norm,
    /// What is in the middle of feed-forward networks.
    pub function: Function,
    /// How layers rotate queries and keys.
    pub rotation: Option<Rotation>,
    pub bias: PositionBias,
    /// Which tokens those of a layer see.
    pub mask: fn(&Builder<'_>, layer: u64) -> Result<Mask, Finding>,
    /// What else differs in a layer.
    pub adjust: fn(&mut Builder<'_>, layer: u64, attend: &mut Attend) -> Result<(), Finding>,
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

/// A whole model: embedding, layers, output.
pub(crate) fn decoder(builder: &mut Builder<'_>, decoder: &Decoder) -> Result<(), Finding> {
    let embedded = builder.embedding()?;
    let mut x = builder.scale(embedded, decoder.embedding_scale);
    if builder.has("token_embd_norm.weight") {
        x = builder.norm(x, "token_embd_norm", decoder.norm);
    }
    for layer in 0..builder.hyper.u64("block_count")? {
        builder.at("blk.", Some(layer));
        x = self::layer(builder, x, layer, decoder)?;
    }
    builder.at("", None);
    finish(builder, x, decoder)
}

fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let heads = Heads::of(builder, layer)?;
    let mut attend = Attend {
        heads,
        scale: decoder.attention_scale.unwrap_or(1.0 / (heads.key_len as f32).sqrt()),
        mask: (decoder.mask)(builder, layer)?,
        rotation: decoder.rotation.clone(),
        norm: decoder.norm,
        bias: decoder.bias,
        soft_cap: builder.stated("attn_logit_softcapping")?,
        clamp: builder.stated("attention.clamp_kqv")?.filter(|bound| *bound > 0.0),
        cached: true,
    };
    (decoder.adjust)(builder, layer, &mut attend)?;
    let normed = normed(builder, x, "attn_norm", decoder.norm);
    let mut attended = attention(builder, normed, &attend)?;
    if builder.has("post_attention_norm.weight") {
        attended = builder.norm(attended, "post_attention_norm", decoder.norm);
    }
    let attended = builder.scale(attended, decoder.residual_scale);
    if decoder.parallel {
        let input = match ["ffn_norm", "attn_norm_2"].iter().find(|name| has_norm(builder, name)) {
            Some(name) => builder.norm(x, name, decoder.norm),
            None => normed,
        };
        let fed = network(builder, input, layer, decoder)?;
        let sum = builder.add(x, attended);
        return Ok(builder.add(sum, fed));
    }
    let x = builder.add(x, attended);
    let normed = self::normed(builder, x, "ffn_norm", decoder.norm);
    let mut fed = network(builder, normed, layer, decoder)?;
    if builder.has("post_ffw_norm.weight") {
        fed = builder.norm(fed, "post_ffw_norm", decoder.norm);
    }
    let fed = builder.scale(fed, decoder.residual_scale);
    Ok(builder.add(x, fed))
}

/// The feed-forward network of a layer, or its experts.
fn network(
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
    let hidden = normed(builder, x, "output_norm", decoder.norm);
    builder.output(OutputKind::Hidden, hidden);
    let name = if builder.has("output.weight") { "output" } else { "token_embd" };
    let mut logits = builder.product(hidden, name)?;
    logits = builder.scale(logits, decoder.logit_scale);
    if let Some(cap) = builder.stated("final_logit_softcapping")?.filter(|cap| *cap > 0.0) {
        logits = builder.op(Op::SoftCap { x: logits, cap });
    }
    builder.output(OutputKind::Logits, logits);
    Ok(())
}

/// `x` normed by these weights, or as it is where the model does not have them.
fn normed(builder: &mut Builder<'_>, x: ValueId, name: &str, norm: Norm) -> ValueId {
    if has_norm(builder, name) { builder.norm(x, name, norm) } else { x }
}

fn has_norm(builder: &Builder<'_>, name: &str) -> bool {
    builder.has(&format!("{name}.weight"))
}

impl Decoder {
    /// What llama is: root mean square norms, rotation, a gate with SiLU; experts by softmax over all,
    /// the weights of those chosen made to sum to 1.
    pub fn gated(builder: &mut Builder<'_>, pairs: Pairs) -> Result<Self, Finding> {
        Ok(Self {
            norm: Norm::mean_square(builder)?,
            function: Function::Silu,
            rotation: rotation(builder, pairs)?,
            ..Self::plain(Norm::mean_square(builder)?)
        })
    }

    /// A transformer without anything special.
    pub fn plain(norm: Norm) -> Self {
        Self {
            norm,
            function: Function::Gelu,
            rotation: None,
            bias: PositionBias::None,
            mask: |_, _| Ok(Mask::Causal),
            adjust: |_, _, _| Ok(()),
            parallel: false,
            embedding_scale: 1.0,
            residual_scale: 1.0,
            attention_scale: None,
            logit_scale: 1.0,
            routing: Routing {
                gating: Gating::Softmax,
                normalize: true,
                scale: 1.0,
                weigh_input: false,
                groups: 1,
                groups_used: 1,
                function: GateFunction::Plain(Function::Silu),
            },
        }
    }
}
