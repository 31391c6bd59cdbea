//! Hunyuan VL: a vision transformer, and a projector with start and end tokens.

use gguf::Error;
use gguf_pipeline::Step;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static HUNYUAN_VL: Encoder = Encoder {
    classes: &["HunYuanVLForConditionalGeneration"],
    complete: |parts| {
        let side = parts.vision.u32(&["max_image_size"])?.unwrap_or(2048);
        parts.vision.default("image_size", side);
        Ok(())
    },
    keys,
    places: &[(
        "vit.",
        &[
            ("embeddings.patch_embedding", "v.patch_embd"),
            ("embeddings.position_embedding", "v.position_embd"),
            ("layers.{}.input_layernorm", "v.blk.{}.ln1"),
            ("layers.{}.post_attention_layernorm", "v.blk.{}.ln2"),
            ("layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"),
            ("layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"),
            ("layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"),
            ("layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"),
            ("layers.{}.mlp.dense_h_to_4h", "v.blk.{}.ffn_up"),
            ("layers.{}.mlp.dense_4h_to_h", "v.blk.{}.ffn_down"),
            ("perceive.before_rms", "mm.pre_norm"),
            ("perceive.proj.{}", "mm.{}"),
            ("perceive.mlp", "mm.model.fc"),
            ("perceive.after_rms", "mm.post_norm"),
            ("perceive.image_begin", "mm.image_begin"),
            ("perceive.image_end", "mm.image_end"),
            ("perceive.image_newline", "v.image_newline"),
            ("perceive.image_sep", "v.view_seperator"),
        ],
    )],
    steps: |_, name, shape| {
        Ok(match (name, shape) {
            // The first position belongs to a class token, which the encoder lacks.
            ("v.position_embd.weight", &[_, rows]) => {
                vec![Step::Pick { groups: 1, start: 1, len: rows.saturating_sub(1) }]
            }
            _ => Vec::new(),
        })
    },
    kept: &[("mm.0.weight", TypeOverride::Float), ("mm.2.weight", TypeOverride::Float)],
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "hunyuanvl");
    keys.set(key::USE_GELU, true);
    let epsilon = parts.vision.f32(&["rms_norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let merged = parts.vision.u32(&["spatial_merge_size"])?.unwrap_or(2);
    keys.set(key::VISION_SPATIAL_MERGE_SIZE, merged);
    parts.pixels(keys, "min_pixels", "max_pixels")
}
