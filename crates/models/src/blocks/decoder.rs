//! The transformer of most architectures, with their differences as data.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, AddScalar, Concat, Embedding, Gating, GluFunction, Index, Mask,
    Mul, OutputKind, PositionBias, RopeLayout, RopeParameters, Scale, SelectOutputs, Slice,
    SoftCap, ValueId,
};

use crate::blocks::{
    Attend, Heads, Routing, WindowPattern, attention, experts, feed_forward, pooled, rope, window,
    window_rope,
};
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Differences between transformers. The tensors tell which projections, biases and norms a layer has.
pub(crate) struct Decoder {
    pub norm: Norm,
    /// Whether norms without weights are applied.
    pub weightless_norms: bool,
    /// Tensor name of the norm before the FFN.
    pub ffn_norm: &'static str,
    /// Tensor name of the norm before the output projection.
    pub output_norm: &'static str,
    /// Activation function of the FFN.
    pub function: ActivationFunction,
    /// RoPE of layers with full attention.
    pub rope: Option<RopeParameters>,
    /// RoPE of sliding-window layers.
    pub window_rope: Option<RopeParameters>,
    /// Default sliding-window pattern.
    pub window_pattern: WindowPattern,
    pub bias: PositionBias,
    /// Builder of a layer.
    pub layer: LayerBuilder,
    /// Builder of the attention of a layer, from its normed input.
    pub attention: AttentionBuilder,
    /// Builder of the FFN or MoE of a layer, from its normed input.
    pub ffn: LayerBuilder,
    /// Whether attention and FFN run in parallel on the same input.
    pub parallel: bool,
    /// Scale of the token embedding.
    pub embedding_scale: f32,
    /// Whether the token embedding has a norm without weights.
    pub normalizes_embedding: bool,
    /// Norm after attention and FFN (post-norm), if it differs from `norm`.
    pub post_norm: Option<Norm>,
    /// Scale of the outputs of attention and FFN.
    pub residual_scale: f32,
    /// Scale of the attention scores; `None` for `1 / sqrt(key_len)`.
    pub attention_scale: Option<f32>,
    /// Scale of the logits.
    pub logit_scale: f32,
    /// Routing of MoE layers.
    pub routing: Routing,
    /// Whether the model has logits; embedding models do not.
    pub has_logits: bool,
    /// Whether MTP layers read hidden states before the final norm.
    pub mtp_before_norm: bool,
    /// Range of token ids that are never generated: the first, and one past the last.
    pub suppressed_tokens: Option<(u32, u32)>,
}

/// Builder of a layer, or of its FFN.
pub(crate) type LayerBuilder =
    fn(&mut Builder<'_>, x: ValueId, layer: u64, decoder: &Decoder) -> Result<ValueId, Finding>;

/// Builder of the attention of a layer, with its parameters.
pub(crate) type AttentionBuilder =
    fn(&mut Builder<'_>, x: ValueId, layer: u64, attend: Attend) -> Result<ValueId, Finding>;

/// Adds the input of the first layer.
pub(crate) fn embedding(builder: &mut Builder<'_>, decoder: &Decoder) -> Result<ValueId, Finding> {
    let embedded = builder.embedding()?;
    let mut x = builder.scale(embedded, decoder.embedding_scale);
    if let Some(table) = builder.find("position_embd.weight") {
        let positions = builder.op(Embedding { table, index: Index::Position });
        x = builder.add(x, positions);
    }
    if decoder.output_norm != EMBEDDING_NORM && builder.has_norm(EMBEDDING_NORM) {
        x = builder.norm(x, EMBEDDING_NORM, decoder.norm);
    }
    if decoder.normalizes_embedding {
        x = builder.norm_without_weight(x, decoder.norm, 1);
    }
    Ok(x)
}

/// Returns the number of layers without multi-token prediction (MTP) layers.
pub(crate) fn layers(builder: &Builder<'_>) -> Result<u64, Finding> {
    let guessing = builder.hparams.u64(key::NEXTN_PREDICT_LAYERS)?;
    Ok(builder.hparams.u64(key::BLOCK_COUNT)?.saturating_sub(guessing))
}

/// Adds a layer: attention, then the FFN, or both in parallel.
pub(crate) fn layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    layer_of(builder, x, layer, decoder, &mut |builder, x, attend| {
        (decoder.attention)(builder, x, layer, attend)
    })
}

/// Builder of attention to the normed input of a layer.
pub(crate) type AttendTo<'a> =
    dyn FnMut(&mut Builder<'_>, ValueId, Attend) -> Result<ValueId, Finding> + 'a;

/// Adds a layer with this attention.
pub(crate) fn layer_of(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
    attention: &mut AttendTo<'_>,
) -> Result<ValueId, Finding> {
    let behind = decoder.post_norm.unwrap_or(decoder.norm);
    // With two pre-norms, the second is that of attention.
    let has_two = builder.has_norm("attn_norm_2");
    let attention_norm = if has_two { "attn_norm_2" } else { "attn_norm" };
    let normed = normed(builder, x, attention_norm, decoder);
    let attend = attend(builder, layer, decoder)?;
    let mut attended = attention(builder, normed, attend)?;
    for name in AFTER_ATTENTION {
        if name != decoder.ffn_norm && builder.has_norm(name) {
            attended = builder.norm(attended, name, behind);
        }
    }
    let attended = builder.scale(attended, decoder.residual_scale);
    if decoder.parallel {
        let input = match ["ffn_norm", "attn_norm"] {
            [own, _] if builder.has_norm(own) => builder.norm(x, own, decoder.norm),
            [_, first] if has_two => builder.norm(x, first, decoder.norm),
            _ => normed,
        };
        let fed = (decoder.ffn)(builder, input, layer, decoder)?;
        let fed = builder.scale(fed, decoder.residual_scale);
        let sum = builder.add(x, attended);
        return Ok(builder.add(sum, fed));
    }
    let x = builder.add(x, attended);
    let normed = self::normed(builder, x, decoder.ffn_norm, decoder);
    let mut fed = (decoder.ffn)(builder, normed, layer, decoder)?;
    for name in AFTER_NETWORK {
        if builder.has_norm(name) {
            fed = builder.norm(fed, name, behind);
        }
    }
    let fed = builder.scale(fed, decoder.residual_scale);
    Ok(builder.add(x, fed))
}

const EMBEDDING_NORM: &str = "token_embd_norm";
/// Names of the post-norms of attention and FFN.
const AFTER_ATTENTION: [&str; 2] = ["post_attention_norm", "attn_output_norm"];
const AFTER_NETWORK: [&str; 2] = ["post_ffw_norm", "layer_output_norm"];

/// Returns the attention parameters of a layer.
pub(crate) fn attend(
    builder: &Builder<'_>,
    layer: u64,
    decoder: &Decoder,
) -> Result<Attend, Finding> {
    let cached = builder.hparams.bool(key::ATTENTION_CAUSAL)?;
    let window = window(builder, layer, decoder.window_pattern)?;
    let heads = Heads::within(builder, layer, window.is_some())?;
    let stated_scale = builder.f32_or_default(key::ATTENTION_SCALE)?.filter(|scale| *scale != 0.0);
    let scale = stated_scale.or(decoder.attention_scale);
    // The specification has two spellings of two keys.
    let clamp = builder.f32_or_default(key::ATTENTION_CLAMP_KQV)?;
    let clamp =
        clamp.or(builder.f32_or_default(key::ATTENTION_CLIP_KQV)?).filter(|bound| *bound > 0.0);
    let slopes = [
        builder.f32_or_default(key::ATTENTION_MAX_ALIBI_BIAS)?,
        builder.f32_or_default(key::ATTENTION_ALIBI_BIAS_MAX)?,
    ];
    let slopes = slopes.into_iter().flatten().find(|max| *max > 0.0);
    Ok(Attend {
        heads,
        scale: scale.unwrap_or(1.0 / (heads.key_len as f32).sqrt()),
        mask: match window {
            Some(len) if cached => Mask::SlidingWindow(len),
            Some(len) => Mask::SymmetricWindow(len),
            None if cached => Mask::Causal,
            None => Mask::Full,
        },
        rope: match window {
            Some(_) => decoder.window_rope.clone(),
            None => decoder.rope.clone(),
        },
        norm: decoder.norm,
        qk_norm_after_rope: false,
        temperature: None,
        bias: slopes.map_or(decoder.bias, |max| PositionBias::Alibi { max_bias: max }),
        soft_cap: builder.f32_or_default(key::ATTN_LOGIT_SOFTCAPPING)?.filter(|cap| *cap > 0.0),
        selection: None,
        compressed: None,
        clamp,
        gate: ActivationFunction::Sigmoid,
        cached,
    })
}

/// Adds the FFN or MoE of a layer.
pub(crate) fn ffn(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    ffn_with(builder, x, layer, decoder.routing, decoder.function)
}

/// Adds the FFN or MoE of a layer with this routing, and this function in dense FFNs and shared experts.
pub(crate) fn ffn_with(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    routing: Routing,
    function: impl Into<GluFunction>,
) -> Result<ValueId, Finding> {
    let function = function.into();
    if !builder.has("ffn_gate_inp.weight") {
        return feed_forward(builder, x, function, "");
    }
    let routed = experts(builder, x, layer, routing)?;
    add_shared_expert(builder, x, routed, function)
}

/// Adds the FFN or MoE of a layer whose gated activation may be clamped.
pub(crate) fn clamped_ffn(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let function = decoder.function;
    let bounded = |limit| GluFunction::ClampAfter { function, limit };
    let [routed, shared] = ["swiglu_clamp_exp", "swiglu_clamp_shexp"].map(|name| {
        let limit = builder.clamp_limit(name, layer)?;
        Ok(limit.map_or(function.into(), bounded))
    });
    let routing = Routing { function: routed?, ..decoder.routing };
    ffn_with(builder, x, layer, routing, shared?)
}

/// Returns the gated activations of routed experts and of other FFNs in a layer that may clamp their input. A model
/// with one limit applies it to both.
pub(crate) fn clamped_activations(
    builder: &Builder<'_>,
    layer: u64,
    function: ActivationFunction,
) -> Result<[GluFunction; 2], Finding> {
    const OF_OTHERS: &str = "swiglu_clamp_shexp";
    let of_experts = builder.clamp_limit(key::SWIGLU_CLAMP_EXP, layer)?;
    let is_stated = builder.hparams.value(OF_OTHERS).is_some();
    let of_others = if is_stated { builder.clamp_limit(OF_OTHERS, layer)? } else { of_experts };
    let bounded = |limit| GluFunction::ClampBefore { function, limit };
    Ok([of_experts, of_others].map(|limit| limit.map_or(function.into(), bounded)))
}

/// Adds the output of the shared expert, if there is one, to that of the routed experts.
pub(crate) fn add_shared_expert(
    builder: &mut Builder<'_>,
    x: ValueId,
    routed: ValueId,
    function: impl Into<GluFunction>,
) -> Result<ValueId, Finding> {
    if !builder.has("ffn_up_shexp.weight") {
        return Ok(routed);
    }
    let mut shared = feed_forward(builder, x, function, "_shexp")?;
    if builder.has("ffn_gate_inp_shexp.weight") {
        let gate = builder.matmul(x, "ffn_gate_inp_shexp")?;
        let gate = builder.op(Activation { x: gate, function: ActivationFunction::Sigmoid });
        shared = builder.op(Mul { a: shared, b: gate });
    }
    Ok(builder.add(routed, shared))
}

/// Adds the final norm and the output projection of the requested rows.
pub(crate) fn finish(
    builder: &mut Builder<'_>,
    x: ValueId,
    decoder: &Decoder,
) -> Result<(), Finding> {
    let x = builder.op(SelectOutputs { x });
    let hidden = normed(builder, x, decoder.output_norm, decoder);
    add_outputs(builder, hidden, decoder)
}

/// Adds the outputs of normed hidden states: pooling, and logits if the model has them.
pub(crate) fn add_outputs(
    builder: &mut Builder<'_>,
    hidden: ValueId,
    decoder: &Decoder,
) -> Result<(), Finding> {
    builder.output(OutputKind::Hidden, hidden);
    pooled(builder, hidden)?;
    if !decoder.has_logits {
        return Ok(());
    }
    let name = if builder.has("output.weight") { "output" } else { "token_embd" };
    add_logits(builder, hidden, name, decoder)
}

/// Adds the logits of normed hidden states, by the matrix of this name.
pub(crate) fn add_logits(
    builder: &mut Builder<'_>,
    hidden: ValueId,
    name: &str,
    decoder: &Decoder,
) -> Result<(), Finding> {
    let mut logits = builder.matmul(hidden, name)?;
    logits = builder.scale(logits, decoder.logit_scale);
    if let Some(cap) =
        builder.f32_or_default(key::FINAL_LOGIT_SOFTCAPPING)?.filter(|cap| *cap > 0.0)
    {
        logits = builder.op(SoftCap { x: logits, cap });
    }
    if let Some(suppressed_tokens) = decoder.suppressed_tokens {
        logits = suppress(builder, logits, suppressed_tokens, name);
    }
    builder.output(OutputKind::Logits, logits);
    Ok(())
}

/// Sets the logits of suppressed tokens to the minimum, if the vocabulary has them.
fn suppress(
    builder: &mut Builder<'_>,
    x: ValueId,
    (start, end): (u32, u32),
    matrix: &str,
) -> ValueId {
    let count = builder.extent(&format!("{matrix}.weight"), 1);
    let count = u32::try_from(count).unwrap_or(0);
    if count <= end {
        return x;
    }
    let [before, suppressed_tokens, behind] = [0..start, start..end, end..count].map(|part| {
        builder.op(Slice { x, groups: 1, start: part.start, len: part.end - part.start })
    });
    let none = builder.op(Scale { x: suppressed_tokens, factor: 0.0 });
    let least = builder.op(AddScalar { x: none, scalar: f32::MIN });
    let concatenated = builder.op(Concat { a: before, b: least, groups: 1, broadcast: false });
    builder.op(Concat { a: concatenated, b: behind, groups: 1, broadcast: false })
}

/// Adds the norm of this name; returns `x` where the model does not have it.
pub(crate) fn normed(
    builder: &mut Builder<'_>,
    x: ValueId,
    name: &str,
    decoder: &Decoder,
) -> ValueId {
    let is_norm = decoder.weightless_norms || builder.has_norm(name);
    if is_norm { builder.norm(x, name, decoder.norm) } else { x }
}

impl Decoder {
    /// A decoder like Llama: RMS norms, RoPE, SwiGLU; experts by softmax over all, with the weights of the chosen
    /// normalized to a sum of 1.
    pub fn llama_like(builder: &mut Builder<'_>, pairs: RopeLayout) -> Result<Self, Finding> {
        let norm = Norm::rms(builder)?;
        Self { function: ActivationFunction::Silu, ..Self::without_rope(norm) }
            .with_rope(builder, pairs)
    }

    /// A decoder with layer norms, RoPE and an FFN without gate.
    pub fn layer_norm_rope(builder: &mut Builder<'_>, pairs: RopeLayout) -> Result<Self, Finding> {
        let norm = Norm::layer(builder)?;
        Self::without_rope(norm).with_rope(builder, pairs)
    }

    /// Returns this decoder with RoPE.
    pub fn with_rope(self, builder: &mut Builder<'_>, pairs: RopeLayout) -> Result<Self, Finding> {
        let rope = rope(builder, pairs)?;
        Ok(Self { rope, window_rope: window_rope(builder, pairs)?, ..self })
    }

    /// A decoder without RoPE, window, bias or scales.
    pub fn without_rope(norm: Norm) -> Self {
        Self {
            norm,
            weightless_norms: false,
            ffn_norm: "ffn_norm",
            output_norm: "output_norm",
            function: ActivationFunction::Gelu,
            rope: None,
            window_rope: None,
            window_pattern: WindowPattern::All,
            bias: PositionBias::None,
            layer,
            attention: |builder, x, _, attend| attention(builder, x, &attend),
            ffn,
            parallel: false,
            embedding_scale: 1.0,
            normalizes_embedding: false,
            post_norm: None,
            residual_scale: 1.0,
            attention_scale: None,
            logit_scale: 1.0,
            routing: Routing {
                gating: Gating::Softmax,
                normalize: true,
                weigh_input: false,
                function: GluFunction::Plain(ActivationFunction::Silu),
                soft_cap: None,
            },
            has_logits: true,
            mtp_before_norm: false,
            suppressed_tokens: None,
        }
    }
}
