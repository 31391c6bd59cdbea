//! Granite Speech: a Conformer, and a windowed Q-Former projector.

use gguf::{Array, Error};

use super::audio;
use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common, divided, reshaped};
use super::tensor_names::layer_of;
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static GRANITE_SPEECH: Encoder = Encoder {
    classes: &["GraniteSpeechForConditionalGeneration"],
    audio: &["encoder_config"],
    complete,
    keys,
    places: &[("encoder.", CONFORMER), ("projector.", PROJECTOR)],
    ignored: &["attention_dists", "num_batches_tracked"],
    special,
    steps: |_, name, shape| {
        let is_convolution = name.contains(".conv_dw.") || name.contains(".conv_pw");
        Ok(match *shape {
            [width, 1, rows] | [1, width, rows] if is_convolution => {
                reshaped(shape, &[width, rows])
            }
            _ => Vec::new(),
        })
    },
    kept: &[(".conv_dw.", TypeOverride::F32), (".conv_pw", TypeOverride::F32)],
    ..Encoder::AUDIO
};

pub static GRANITE_SPEECH_PLUS: Encoder = Encoder {
    classes: &["GraniteSpeechPlusForConditionalGeneration"],
    keys: |parts, all| {
        keys(parts, all)?;
        let layers = parts.audio.u32s("cat_hidden_layers")?.unwrap_or_default();
        let layers: Vec<i32> = layers.into_iter().map(|layer| layer as i32).collect();
        if !layers.is_empty() {
            all.set("audio.feature_layer", Array::from(&layers[..]));
        }
        Ok(())
    },
    ..GRANITE_SPEECH
};

const CONFORMER: Table = &[
    ("input_linear", "a.input_projection"),
    ("out", "a.enc_ctc_out"),
    ("out_mid", "a.enc_ctc_out_mid"),
    ("layers.{}.attn.pre_norm", "a.blk.{}.ln1"),
    ("layers.{}.attn.to_q", "a.blk.{}.attn_q"),
    ("layers.{}.attn.to_out", "a.blk.{}.attn_out"),
    ("layers.{}.attn.rel_pos_emb.weight", "a.blk.{}.attn_rel_pos_emb"),
    ("layers.{}.ff1.pre_norm", "a.blk.{}.ffn_norm"),
    ("layers.{}.ff1.up_proj", "a.blk.{}.ffn_up"),
    ("layers.{}.ff1.down_proj", "a.blk.{}.ffn_down"),
    ("layers.{}.ff2.pre_norm", "a.blk.{}.ffn_norm_1"),
    ("layers.{}.ff2.up_proj", "a.blk.{}.ffn_up_1"),
    ("layers.{}.ff2.down_proj", "a.blk.{}.ffn_down_1"),
    ("layers.{}.post_norm", "a.blk.{}.ln2"),
    ("layers.{}.conv.norm", "a.blk.{}.norm_conv"),
    ("layers.{}.conv.up_conv", "a.blk.{}.conv_pw1"),
    ("layers.{}.conv.depth_conv.conv", "a.blk.{}.conv_dw"),
    ("layers.{}.conv.down_conv", "a.blk.{}.conv_pw2"),
];

const PROJECTOR: Table = &[
    ("query", "a.proj_query"),
    ("qformer.layernorm", "a.proj_norm"),
    ("linear", "a.proj_linear"),
    ("qformer.encoder.layer.{}.attention.attention.query", "a.proj_blk.{}.self_attn_q"),
    ("qformer.encoder.layer.{}.attention.attention.key", "a.proj_blk.{}.self_attn_k"),
    ("qformer.encoder.layer.{}.attention.attention.value", "a.proj_blk.{}.self_attn_v"),
    ("qformer.encoder.layer.{}.attention.output.dense", "a.proj_blk.{}.self_attn_out"),
    ("qformer.encoder.layer.{}.attention.output.LayerNorm", "a.proj_blk.{}.self_attn_norm"),
    ("qformer.encoder.layer.{}.crossattention.attention.query", "a.proj_blk.{}.cross_attn_q"),
    ("qformer.encoder.layer.{}.crossattention.attention.key", "a.proj_blk.{}.cross_attn_k"),
    ("qformer.encoder.layer.{}.crossattention.attention.value", "a.proj_blk.{}.cross_attn_v"),
    ("qformer.encoder.layer.{}.crossattention.output.dense", "a.proj_blk.{}.cross_attn_out"),
    ("qformer.encoder.layer.{}.crossattention.output.LayerNorm", "a.proj_blk.{}.cross_attn_norm"),
    ("qformer.encoder.layer.{}.intermediate_query.dense", "a.proj_blk.{}.ffn_up"),
    ("qformer.encoder.layer.{}.output_query.dense", "a.proj_blk.{}.ffn_down"),
    ("qformer.encoder.layer.{}.output_query.LayerNorm", "a.proj_blk.{}.ffn_norm"),
];

fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    let number =
        |field| EncoderConfigs::number(&parts.audio, &[field], "a size of the audio encoder");
    let (width, heads, layers) =
        (number("hidden_dim")?, number("num_heads")?, number("num_layers")?);
    let wide = width.saturating_mul(number("feedforward_mult")?);
    for (field, value) in [
        ("hidden_size", width),
        ("intermediate_size", wide),
        ("num_attention_heads", heads),
        ("num_hidden_layers", layers),
    ] {
        parts.audio.set(field, value);
    }
    Ok(())
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    let number =
        |field| EncoderConfigs::number(&parts.audio, &[field], "a size of the audio encoder");
    keys.set(key::PROJECTOR_TYPE, "granite_speech");
    keys.set(key::AUDIO_NUM_MEL_BINS, number("input_dim")?);
    keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
    keys.set(key::AUDIO_CHUNK_SIZE, number("context_size")?);
    keys.set(key::AUDIO_CONV_KERNEL_SIZE, number("conv_kernel_size")?);
    keys.set(key::AUDIO_MAX_POS_EMB, number("max_pos_emb")?);
    let number = |field| EncoderConfigs::number(&parts.model, &[field], "of the projector");
    keys.set(key::AUDIO_PROJECTOR_WINDOW_SIZE, number("window_size")?);
    keys.set(key::AUDIO_PROJECTOR_DOWNSAMPLE_RATE, number("downsample_rate")?);
    let projector = parts.model.part("projector_config");
    let heads = EncoderConfigs::number(
        &projector,
        &["num_attention_heads"],
        "the number of heads of the projector",
    )?;
    keys.set(key::AUDIO_PROJECTOR_HEAD_COUNT, heads);
    Ok(())
}

fn special(_: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    if let Some((layer, end)) = layer_of(tensor.name, "encoder.layers.{}.attn.to_kv") {
        let names = ["k", "v"].map(|x| format!("a.blk.{layer}.attn_{x}.{end}"));
        return Ok(Some(divided(names, tensor.shape)));
    }
    let folded = audio::folded_norm(tensor, "encoder.layers.{}.conv.batch_norm")?;
    Ok(folded.map(|(layer, scale, shift)| match layer {
        Some(layer) => EncoderMapping::Vectors(vec![
            (format!("a.blk.{layer}.conv_norm.weight"), scale),
            (format!("a.blk.{layer}.conv_norm.bias"), shift),
        ]),
        None => EncoderMapping::DROPPED,
    }))
}
