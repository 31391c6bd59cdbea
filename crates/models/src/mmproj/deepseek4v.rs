//! DeepSeek V4 with vision: gated layers, and its own fields at the top level of the configuration.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common, divided, reshaped};
use super::tensor_names::layer_of;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static DEEPSEEK4V: Encoder = Encoder {
    classes: &["DeepseekV4ForCausalLM"],
    vision: &[],
    complete,
    keys,
    places: &[
        (
            "vision.",
            &[
                ("patch_embed.proj", "v.patch_embd"),
                ("norm", "v.post_ln"),
                ("blocks.{}.norm1", "v.blk.{}.ln1"),
                ("blocks.{}.norm2", "v.blk.{}.ln2"),
                ("blocks.{}.attn.wqkv", "v.blk.{}.attn_qkv"),
                ("blocks.{}.attn.wo", "v.blk.{}.attn_out"),
                ("blocks.{}.mlp.w2", "v.blk.{}.ffn_down"),
            ],
        ),
        ("aligner.", &[("w{}", "mm.{}")]),
        (
            "image_",
            &[
                ("newline", "v.image_newline"),
                ("start", "v.token_embd.img_start"),
                ("end", "v.token_embd.img_end"),
                ("pad", "v.token_embd.img_pad"),
            ],
        ),
    ],
    special: |_, tensor| {
        Ok(layer_of(tensor.name, "vision.blocks.{}.mlp.w1").map(|(layer, end)| {
            divided(["gate", "up"].map(|x| format!("v.blk.{layer}.ffn_{x}.{end}")), tensor.shape)
        }))
    },
    steps: |parts, name, shape| {
        let side = parts.vision.u32(&["patch_size"])?.unwrap_or(0).into();
        Ok(match (name, shape) {
            ("v.patch_embd.weight", &[_, rows]) => reshaped(shape, &[side, side, 3, rows]),
            _ => Vec::new(),
        })
    },
    ..Encoder::VISION
};

fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    parts.has_vision = true;
    for (field, stated) in [
        ("num_hidden_layers", "vision_n_layers"),
        ("hidden_size", "vision_dim"),
        ("num_attention_heads", "vision_n_heads"),
        ("intermediate_size", "vision_inter_dim"),
        ("patch_size", "vision_patch_size"),
        ("downsample_ratio", "vision_downsample_ratio"),
        ("min_pixels", "vision_min_pixels"),
    ] {
        let number = parts.model.require_u32(&[stated], "a size of the vision encoder")?;
        parts.vision.set(field, number);
    }
    let side = |field| parts.vision.u32(&[field]);
    let patch = side("patch_size")?.unwrap_or(0);
    let merged = side("downsample_ratio")?.unwrap_or(0);
    parts.vision.set("image_size", patch.saturating_mul(merged).saturating_mul(16));
    for field in ["image_mean", "image_std"] {
        parts.image.default(field, vec![0.5, 0.5, 0.5]);
    }
    // Runtimes hard-code these.
    for (field, number) in [("vision_max_n_token", 384), ("vision_max_wh_ratio", 8)] {
        if let Some(other) = parts.model.u32(&[field])?.filter(|stated| *stated != number) {
            return Err(parts.model.wrong(field, &other.into(), &number.to_string()));
        }
    }
    Ok(())
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "deepseek4v");
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, 1e-6f32);
    keys.set(key::USE_SILU, true);
    keys.set_u32(key::VISION_PROJECTOR_SCALE_FACTOR, parts.vision.u32(&["downsample_ratio"])?);
    keys.set_u32(key::VISION_IMAGE_MIN_PIXELS, parts.vision.u32(&["min_pixels"])?);
    Ok(())
}
