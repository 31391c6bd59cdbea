//! Gemma 4: a vision encoder for images of any size, and a Conformer audio encoder.

use gguf::Error;
use gguf_pipeline::{Function, Step};

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common, patches, reshaped};
use super::gemma3n::{IMAGES, SOUND};
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static GEMMA4: Encoder = Encoder {
    classes: &["Gemma4ForConditionalGeneration"],
    audio: &["audio_config"],
    complete: |parts| {
        // Images have any size.
        parts.vision.set("image_size", 224);
        parts.has_audio = parts.audio.find(&["hidden_size", "model_type"]).is_some();
        let bins = parts.audio.u32(&["input_feat_size"])?.unwrap_or(128);
        parts.audio.set("num_mel_bins", bins);
        if let Some(width) = parts.audio.u32(&["hidden_size"])? {
            parts.audio.set("intermediate_size", width.saturating_mul(4));
        }
        Ok(())
    },
    keys: keys_of,
    places: &[
        ("vision_tower.", TOWER),
        ("embed_vision.", IMAGES),
        ("audio_tower.", CONFORMER),
        ("embed_audio.", SOUND),
    ],
    steps: |_, name, shape| {
        Ok(match (name, shape) {
            ("v.patch_embd.weight", _) => patches(shape, 3),
            (name, _) if name.ends_with("per_dim_scale.weight") => {
                vec![Step::Map(Function::Softplus)]
            }
            (name, &[width, 1, rows]) if name.ends_with("conv_dw.weight") => {
                reshaped(shape, &[width, rows])
            }
            _ => Vec::new(),
        })
    },
    kept: &[
        ("a.conv1d.", TypeOverride::F32),
        ("a.input_projection.weight", TypeOverride::F32),
        (".conv_dw.weight", TypeOverride::F32),
    ],
    ..Encoder::VISION
};

const TOWER: Table = &[
    ("patch_embedder.input_proj", "v.patch_embd"),
    ("patch_embedder.position_embedding_table", "v.position_embd.weight"),
    ("std_bias", "v.std_bias"),
    ("std_scale", "v.std_scale"),
    ("encoder.layers.{}.input_layernorm", "v.blk.{}.ln1"),
    ("encoder.layers.{}.post_attention_layernorm", "v.blk.{}.attn_post_norm"),
    ("encoder.layers.{}.pre_feedforward_layernorm", "v.blk.{}.ln2"),
    ("encoder.layers.{}.post_feedforward_layernorm", "v.blk.{}.ffn_post_norm"),
    ("encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"),
    ("encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"),
    ("encoder.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"),
    ("encoder.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"),
    ("encoder.layers.{}.self_attn.q_proj.linear", "v.blk.{}.attn_q"),
    ("encoder.layers.{}.self_attn.k_proj.linear", "v.blk.{}.attn_k"),
    ("encoder.layers.{}.self_attn.v_proj.linear", "v.blk.{}.attn_v"),
    ("encoder.layers.{}.self_attn.o_proj.linear", "v.blk.{}.attn_out"),
    ("encoder.layers.{}.self_attn.q_norm", "v.blk.{}.attn_q_norm"),
    ("encoder.layers.{}.self_attn.k_norm", "v.blk.{}.attn_k_norm"),
    ("encoder.layers.{}.mlp.gate_proj", "v.blk.{}.ffn_gate"),
    ("encoder.layers.{}.mlp.up_proj", "v.blk.{}.ffn_up"),
    ("encoder.layers.{}.mlp.down_proj", "v.blk.{}.ffn_down"),
    ("encoder.layers.{}.mlp.gate_proj.linear", "v.blk.{}.ffn_gate"),
    ("encoder.layers.{}.mlp.up_proj.linear", "v.blk.{}.ffn_up"),
    ("encoder.layers.{}.mlp.down_proj.linear", "v.blk.{}.ffn_down"),
    ("encoder.layers.{}.layer_scalar", "v.blk.{}.out_scale.weight"),
];

const CONFORMER: Table = &[
    ("subsample_conv_projection.layer{}.conv", "a.conv1d.{}"),
    ("subsample_conv_projection.layer{}.norm", "a.conv1d.{}.norm"),
    ("subsample_conv_projection.input_proj_linear", "a.input_projection"),
    ("output_proj", "a.pre_encode.out"),
    ("layers.{}.feed_forward1.pre_layer_norm", "a.blk.{}.ffn_norm"),
    ("layers.{}.feed_forward1.ffw_layer_1", "a.blk.{}.ffn_up"),
    ("layers.{}.feed_forward1.ffw_layer_1.linear", "a.blk.{}.ffn_up"),
    ("layers.{}.feed_forward1.ffw_layer_2", "a.blk.{}.ffn_down"),
    ("layers.{}.feed_forward1.ffw_layer_2.linear", "a.blk.{}.ffn_down"),
    ("layers.{}.feed_forward1.post_layer_norm", "a.blk.{}.ffn_post_norm"),
    ("layers.{}.feed_forward2.pre_layer_norm", "a.blk.{}.ffn_norm_1"),
    ("layers.{}.feed_forward2.ffw_layer_1", "a.blk.{}.ffn_up_1"),
    ("layers.{}.feed_forward2.ffw_layer_1.linear", "a.blk.{}.ffn_up_1"),
    ("layers.{}.feed_forward2.ffw_layer_2", "a.blk.{}.ffn_down_1"),
    ("layers.{}.feed_forward2.ffw_layer_2.linear", "a.blk.{}.ffn_down_1"),
    ("layers.{}.feed_forward2.post_layer_norm", "a.blk.{}.ffn_post_norm_1"),
    ("layers.{}.norm_pre_attn", "a.blk.{}.attn_pre_norm"),
    ("layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"),
    ("layers.{}.self_attn.q_proj.linear", "a.blk.{}.attn_q"),
    ("layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"),
    ("layers.{}.self_attn.k_proj.linear", "a.blk.{}.attn_k"),
    ("layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"),
    ("layers.{}.self_attn.v_proj.linear", "a.blk.{}.attn_v"),
    ("layers.{}.self_attn.post", "a.blk.{}.attn_out"),
    ("layers.{}.self_attn.post.linear", "a.blk.{}.attn_out"),
    ("layers.{}.self_attn.relative_k_proj", "a.blk.{}.attn_k_rel"),
    ("layers.{}.self_attn.per_dim_scale", "a.blk.{}.per_dim_scale.weight"),
    ("layers.{}.norm_post_attn", "a.blk.{}.attn_post_norm"),
    ("layers.{}.norm_out", "a.blk.{}.ln2"),
    ("layers.{}.lconv1d.pre_layer_norm", "a.blk.{}.conv_norm"),
    ("layers.{}.lconv1d.linear_start", "a.blk.{}.conv_pw1"),
    ("layers.{}.lconv1d.linear_start.linear", "a.blk.{}.conv_pw1"),
    ("layers.{}.lconv1d.depthwise_conv1d", "a.blk.{}.conv_dw"),
    ("layers.{}.lconv1d.conv_norm", "a.blk.{}.norm_conv"),
    ("layers.{}.lconv1d.linear_end", "a.blk.{}.conv_pw2"),
    ("layers.{}.lconv1d.linear_end.linear", "a.blk.{}.conv_pw2"),
];

fn keys_of(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::VISION_PROJECTOR_TYPE, "gemma4v");
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    if parts.has_audio {
        keys.set(key::AUDIO_PROJECTOR_TYPE, "gemma4a");
        keys.set_u32(key::AUDIO_NUM_MEL_BINS, parts.audio.u32(&["num_mel_bins"])?);
        let epsilon = parts.audio.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
        keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    }
    Ok(())
}

/// Gemma 4 Unified, without encoder layers: projected patches and audio frames go directly into the text model.
pub static GEMMA4_UNIFIED: Encoder = Encoder {
    classes: &["Gemma4UnifiedForConditionalGeneration"],
    complete: |parts| {
        parts.vision.set("image_size", 224);
        for (config, width) in
            [(&mut parts.vision, "mm_embed_dim"), (&mut parts.audio, "audio_embed_dim")]
        {
            let width =
                EncoderConfigs::number(config, &[width], "the input size of the projector")?;
            config.set("hidden_size", width);
            for field in ["intermediate_size", "num_layers", "num_attention_heads"] {
                config.set(field, 0);
            }
        }
        let bins = parts.audio.u32(&["input_feat_size"])?.unwrap_or(128);
        parts.audio.set("num_mel_bins", bins);
        Ok(())
    },
    keys: |parts, keys| {
        keys_of(parts, keys)?;
        keys.set(key::VISION_PROJECTOR_TYPE, "gemma4uv");
        keys.set(key::AUDIO_PROJECTOR_TYPE, "gemma4ua");
        Ok(())
    },
    places: &[
        (
            "vision_embedder.",
            &[
                ("patch_dense", "v.patch_embd"),
                ("patch_ln{}", "v.patch_norm.{}"),
                ("pos_norm", "v.patch_norm.3"),
                ("pos_embedding", "v.position_embd.weight"),
            ],
        ),
        ("embed_vision.", IMAGES),
        ("embed_audio.", SOUND),
    ],
    steps: |_, name, shape| {
        Ok(match (name, shape) {
            // Channel-last becomes channel-first.
            ("v.patch_embd.weight", &[len, rows]) => by_colour(shape, len / 3, rows),
            ("v.patch_norm.1.weight" | "v.patch_norm.1.bias", &[len]) => {
                by_colour(shape, len / 3, 1)
            }
            ("v.position_embd.weight", &[width, axes, positions]) => {
                let moved =
                    Step::Exchange { groups: 1, start: 0, outer: positions, inner: axes, len: 1 };
                let turned = reshaped(shape, &[width, positions, axes]);
                [vec![moved], turned].concat()
            }
            _ => Vec::new(),
        })
    },
    kept: &[],
    ..GEMMA4
};

/// Returns the steps that turn rows of `pixels` channel triples into three rows of pixels.
fn by_colour(shape: &[u64], pixels: u64, rows: u64) -> Vec<Step> {
    let mut steps = reshaped(shape, &[3, pixels, rows]);
    steps.push(Step::Transpose);
    steps.extend(reshaped(&[pixels, 3, rows], shape));
    steps
}
