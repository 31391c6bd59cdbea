//! Computation graph of DFlash and DSpark. The encoder stores keys and values of features of the target; the main program
//! predicts a block of tokens that attend to them and to each other.

use gguf::Finding;
use gguf_graph::{
    ActivationFunction, Embedding, Index, KvSource, KvStore, Mask, MulWeight, OutputKind,
    RopeLayout, SelectOutputs, State, TokenFeatures, ValueId,
};

use crate::blocks::{
    Attend, Decoder, Heads, apply_rope, attend, attend_in, attention_output, draft_embedding,
    finish, head_norm, layer_of,
};
use crate::graph::{Builder, Purpose};
use crate::schema::key;

/// Builds the graph of drafts whose layers are like those of Qwen 3.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    if builder.purpose == &Purpose::MarkovHead {
        return markov_head(builder);
    }
    for (sign, layers) in
        [("blk.0.attn_conv_proj.weight", "DFlash 2"), ("output_hc_fn.weight", "DeepSeek V4")]
    {
        if builder.has(sign) {
            let message = format!("drafts with the layers of {layers} cannot be run");
            return Err(Finding::error("architecture-unknown", message)
                .key("general.architecture")
                .help("use a DFlash or DSpark model with layers like those of Qwen 3"));
        }
    }
    let decoder = decoder(builder)?;
    let layers = builder.hparams.u64(key::BLOCK_COUNT)?;
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let read = builder.u64_array(key::TARGET_LAYERS)?.len() as u32;
    let features = builder.op(TokenFeatures { width: width.saturating_mul(read) });
    let joined = builder.matmul(features, "fc")?;
    builder.weight("enc.output_norm.weight")?;
    let joined = builder.norm(joined, "enc.output_norm", decoder.norm);
    let mut states = Vec::new();
    for layer in 0..layers {
        builder.set_layer("blk.", Some(layer));
        let attend = attend(builder, layer, &decoder)?;
        let [key, value] = key_value(builder, joined, &attend)?;
        let [_, keys, values] = attend.heads.widths();
        let state = builder.state(State::kv_cache(keys, values));
        builder.op(KvStore { key, value, state });
        states.push(state);
    }
    builder.set_layer("", None);
    builder.end_encoder();

    let embedded = draft_embedding(builder)?;
    let mut x = builder.scale(embedded, decoder.embedding_scale);
    for (layer, state) in (0..layers).zip(states) {
        builder.set_layer("blk.", Some(layer));
        builder.weight(&format!("{}.weight", decoder.ffn_norm))?;
        x = layer_of(builder, x, layer, &decoder, &mut |builder, x, attend| {
            let attend = of_block(builder, attend);
            let Heads { heads, key_len, .. } = attend.heads;
            let query = builder.matmul(x, "attn_q")?;
            let query = head_norm(builder, query, "attn_q_norm", attend.norm, heads, key_len);
            let query = apply_rope(builder, query, heads, &attend.rope);
            let [key, value] = key_value(builder, x, &attend)?;
            let cached = KvSource::Cached { key, value, state };
            let attended = attend_in(builder, query, cached, &attend);
            let output = attention_output(builder, x, attended, &attend)?;
            let factor = builder.scale_or_one(key::ATTENTION_VALUE_SCALE)?;
            Ok(builder.scale(output, factor))
        })?;
        if let Some(weight) = builder.find("layer_output_scale.weight") {
            x = builder.op(MulWeight { x, weight });
        }
    }
    builder.set_layer("", None);
    finish(builder, x, &decoder)
}

/// Returns the layers of a draft.
fn decoder(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let llama_like = Decoder::llama_like(builder, RopeLayout::Neox)?;
    let activation = builder.hparams.value(key::HIDDEN_ACTIVATION).and_then(|name| name.as_str());
    let has_own_norm = builder.has("blk.0.ffn_norm.weight");
    Ok(Decoder {
        function: match activation {
            Some("gelu" | "gelu_pytorch_tanh") => ActivationFunction::Gelu,
            _ => ActivationFunction::Silu,
        },
        ffn_norm: if has_own_norm { "ffn_norm" } else { "post_attention_norm" },
        window_rope: llama_like.rope.clone(),
        embedding_scale: builder.scale_or_one(key::EMBEDDING_SCALE)?,
        logit_scale: builder.scale_or_one(key::LOGIT_SCALE)?,
        ..llama_like
    })
}

/// Returns attention in which tokens of a block attend to later ones, too, unless the file says otherwise.
fn of_block(builder: &Builder<'_>, attend: Attend) -> Attend {
    let causal = builder.hparams.value(key::ATTENTION_CAUSAL).and_then(|flag| flag.to_bool());
    let is_causal = causal == Some(true);
    let mask = match attend.mask {
        Mask::SlidingWindow(len) | Mask::SymmetricWindow(len) if !is_causal => {
            Mask::LookaheadWindow(len)
        }
        causal_mask if is_causal => causal_mask,
        _ => Mask::Full,
    };
    Attend { mask, cached: true, ..attend }
}

/// Adds keys and values. Without a projection of their own, values are the normed keys before RoPE.
fn key_value(
    builder: &mut Builder<'_>,
    x: ValueId,
    attend: &Attend,
) -> Result<[ValueId; 2], Finding> {
    let Heads { heads_kv, key_len, .. } = attend.heads;
    let key = builder.matmul(x, "attn_k")?;
    let value = match builder.has("attn_v.weight") {
        true => builder.matmul(x, "attn_v")?,
        false => builder.norm_without_weight(key, attend.norm, heads_kv),
    };
    let key = head_norm(builder, key, "attn_k_norm", attend.norm, heads_kv, key_len);
    Ok([apply_rope(builder, key, heads_kv, &attend.rope), value])
}

/// Builds the Markov head of DSpark, whose logits are a term of those after a token.
fn markov_head(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let table = builder.weight("markov_w1.weight")?;
    let x = builder.op(Embedding { table, index: Index::Token });
    let x = builder.op(SelectOutputs { x });
    let logits = builder.matmul(x, "markov_w2")?;
    builder.output(OutputKind::Logits, logits);
    Ok(())
}
