//! Gemma 3n: a MobileNet vision encoder and a Conformer audio encoder.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common, reshaped};
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

/// Number of vision layers in all files. Runtimes ignore it.
const LAYERS_STATED: u32 = 128;

pub static GEMMA3N: Encoder = Encoder {
    classes: &["Gemma3nForConditionalGeneration"],
    audio: &["audio_config"],
    complete,
    keys,
    places: &[
        ("vision_tower.timm_model.", MOBILE),
        ("embed_vision.", IMAGES),
        ("audio_tower.", CONFORMER),
        ("embed_audio.", SOUND),
    ],
    steps: |_, name, shape| {
        Ok(match *shape {
            [channels] if name == "v.conv_stem.conv.bias" => reshaped(shape, &[1, 1, channels, 1]),
            _ => Vec::new(),
        })
    },
    kept: &[
        ("v.conv_stem.", TypeOverride::F32),
        ("a.pre_encode.out.", TypeOverride::F16),
        ("a.conv1d.", TypeOverride::F32),
        (".conv_dw.weight", TypeOverride::F32),
    ],
    ..Encoder::VISION
};

pub const IMAGES: Table = &[
    ("embedding", "mm.embedding"),
    ("embedding_projection", "mm.input_projection"),
    ("hard_embedding_norm", "mm.hard_emb_norm"),
    ("soft_embedding_norm", "mm.soft_emb_norm"),
];

pub const SOUND: Table = &[
    ("embedding", "mm.a.embedding"),
    ("embedding_projection", "mm.a.input_projection"),
    ("hard_embedding_norm", "mm.a.hard_emb_norm"),
    ("soft_embedding_norm", "mm.a.soft_emb_norm"),
];

/// Tensor names in blocks are those of the `timm` library.
const MOBILE: Table = &[
    ("conv_stem.conv", "v.conv_stem.conv"),
    ("conv_stem.bn", "v.conv_stem.bn"),
    ("msfa.ffn.pw_exp.conv", "v.msfa.ffn.pw_exp.conv"),
    ("msfa.ffn.pw_exp.bn", "v.msfa.ffn.pw_exp.bn"),
    ("msfa.ffn.pw_proj.conv", "v.msfa.ffn.pw_proj.conv"),
    ("msfa.ffn.pw_proj.bn", "v.msfa.ffn.pw_proj.bn"),
    ("msfa.norm", "v.msfa.norm"),
    ("blocks.{}.{}.conv_exp", "v.blk.{}.{}.conv_exp"),
    ("blocks.{}.{}.bn1", "v.blk.{}.{}.bn1"),
    ("blocks.{}.{}.conv_pwl", "v.blk.{}.{}.conv_pwl"),
    ("blocks.{}.{}.bn2", "v.blk.{}.{}.bn2"),
    ("blocks.{}.{}.dw_start.conv", "v.blk.{}.{}.dw_start.conv"),
    ("blocks.{}.{}.dw_start.bn", "v.blk.{}.{}.dw_start.bn"),
    ("blocks.{}.{}.dw_mid.conv", "v.blk.{}.{}.dw_mid.conv"),
    ("blocks.{}.{}.dw_mid.bn", "v.blk.{}.{}.dw_mid.bn"),
    ("blocks.{}.{}.pw_exp.conv", "v.blk.{}.{}.pw_exp.conv"),
    ("blocks.{}.{}.pw_exp.bn", "v.blk.{}.{}.pw_exp.bn"),
    ("blocks.{}.{}.pw_proj.conv", "v.blk.{}.{}.pw_proj.conv"),
    ("blocks.{}.{}.pw_proj.bn", "v.blk.{}.{}.pw_proj.bn"),
    ("blocks.{}.{}.layer_scale.gamma", "v.blk.{}.{}.layer_scale.gamma"),
    ("blocks.{}.{}.attn.query.proj", "v.blk.{}.{}.attn.query.proj"),
    ("blocks.{}.{}.attn.key.proj", "v.blk.{}.{}.attn.key.proj"),
    ("blocks.{}.{}.attn.value.proj", "v.blk.{}.{}.attn.value.proj"),
    ("blocks.{}.{}.attn.output.proj", "v.blk.{}.{}.attn.output.proj"),
    ("blocks.{}.{}.attn.key.down_conv", "v.blk.{}.{}.attn.key.down_conv"),
    ("blocks.{}.{}.attn.key.norm", "v.blk.{}.{}.attn.key.norm"),
    ("blocks.{}.{}.attn.value.down_conv", "v.blk.{}.{}.attn.value.down_conv"),
    ("blocks.{}.{}.attn.value.norm", "v.blk.{}.{}.attn.value.norm"),
    ("blocks.{}.{}.norm", "v.blk.{}.{}.norm"),
];

const CONFORMER: Table = &[
    ("subsample_conv_projection.conv_{}.conv", "a.conv1d.{}"),
    ("subsample_conv_projection.conv_{}.norm", "a.conv1d.{}.norm"),
    ("subsample_conv_projection.input_proj_linear", "a.pre_encode.out"),
    ("conformer.{}.norm", "a.blk.{}.layer_pre_norm"),
    ("conformer.{}.attention.pre_attn_norm", "a.blk.{}.ln1"),
    ("conformer.{}.attention.attn.q_proj", "a.blk.{}.attn_q"),
    ("conformer.{}.attention.attn.k_proj", "a.blk.{}.attn_k"),
    ("conformer.{}.attention.attn.v_proj", "a.blk.{}.attn_v"),
    ("conformer.{}.attention.attn.per_dim_scale", "a.blk.{}.per_dim_scale"),
    ("conformer.{}.attention.attn.relative_position_embedding.pos_proj", "a.blk.{}.linear_pos"),
    ("conformer.{}.attention.post", "a.blk.{}.attn_out"),
    ("conformer.{}.attention.post_norm", "a.blk.{}.ln2"),
    ("conformer.{}.ffw_layer_start.pre_layer_norm", "a.blk.{}.ffn_norm"),
    ("conformer.{}.ffw_layer_start.ffw_layer_1", "a.blk.{}.ffn_up"),
    ("conformer.{}.ffw_layer_start.ffw_layer_2", "a.blk.{}.ffn_down"),
    ("conformer.{}.ffw_layer_start.post_layer_norm", "a.blk.{}.ffn_post_norm"),
    ("conformer.{}.ffw_layer_start.post_layer_scale", "a.blk.{}.ffn_scale"),
    ("conformer.{}.ffw_layer_end.pre_layer_norm", "a.blk.{}.ffn_norm_1"),
    ("conformer.{}.ffw_layer_end.ffw_layer_1", "a.blk.{}.ffn_up_1"),
    ("conformer.{}.ffw_layer_end.ffw_layer_2", "a.blk.{}.ffn_down_1"),
    ("conformer.{}.ffw_layer_end.post_layer_norm", "a.blk.{}.ffn_post_norm_1"),
    ("conformer.{}.ffw_layer_end.post_layer_scale", "a.blk.{}.ffn_scale_1"),
    ("conformer.{}.lconv1d.pre_layer_norm", "a.blk.{}.conv_norm"),
    ("conformer.{}.lconv1d.linear_start", "a.blk.{}.conv_pw1"),
    ("conformer.{}.lconv1d.depthwise_conv1d", "a.blk.{}.conv_dw"),
    ("conformer.{}.lconv1d.conv_norm", "a.blk.{}.norm_conv"),
    ("conformer.{}.lconv1d.linear_end", "a.blk.{}.conv_pw2"),
];

fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    let size = parts.image.part("size").u32(&["height"])?.unwrap_or(768);
    let tokens = parts.image.u32(&["image_seq_length"])?.unwrap_or(256).max(1);
    let vision = &mut parts.vision;
    let wide = vision.u32(&["intermediate_size"])?.unwrap_or(2048);
    let heads = vision.u32(&["num_attention_heads"])?.unwrap_or(8);
    for (field, value) in [
        ("n_layers", LAYERS_STATED),
        ("intermediate_size", wide.saturating_mul(4)),
        ("num_attention_heads", heads),
        ("image_size", size),
        ("patch_size", size / tokens),
    ] {
        vision.set(field, value);
    }
    // Channels are not normalized.
    parts.image.set("image_mean", vec![0.0; 3]);
    parts.image.set("image_std", vec![1.0; 3]);
    for (field, stated) in [
        ("n_layers", "conf_num_hidden_layers"),
        ("num_attention_heads", "conf_num_attention_heads"),
        ("num_mel_bins", "input_feat_size"),
    ] {
        let number =
            EncoderConfigs::number(&parts.audio, &[stated], "a size of the audio encoder")?;
        parts.audio.set(field, number);
    }
    parts.audio.default("intermediate_size", 6144);
    Ok(())
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::VISION_PROJECTOR_TYPE, "gemma3nv");
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    keys.set(key::AUDIO_PROJECTOR_TYPE, "gemma3na");
    keys.set_u32(key::AUDIO_NUM_MEL_BINS, parts.audio.u32(&["num_mel_bins"])?);
    keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
    Ok(())
}
