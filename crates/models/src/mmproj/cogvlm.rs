//! CogVLM: a vision transformer with a class token, and a gated projector.

use super::encoder::{Encoder, common};
use crate::schema::key;

pub static COGVLM: Encoder = Encoder {
    classes: &["CogVLMForCausalLM"],
    keys: |parts, keys| {
        common(parts, keys)?;
        let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
        keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
        keys.set(key::PROJECTOR_TYPE, "cogvlm");
        Ok(())
    },
    places: &[(
        "vision.",
        &[
            ("boi", "v.boi"),
            ("eoi", "v.eoi"),
            ("patch_embedding.cls_embedding", "v.class_embd"),
            ("patch_embedding.proj", "v.patch_embd"),
            ("patch_embedding.position_embedding", "v.position_embd"),
            ("transformer.layers.{}.input_layernorm", "v.blk.{}.ln1"),
            ("transformer.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"),
            ("transformer.layers.{}.attention.query_key_value", "v.blk.{}.attn_qkv"),
            ("transformer.layers.{}.attention.dense", "v.blk.{}.attn_out"),
            ("transformer.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"),
            ("transformer.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"),
            ("linear_proj.linear_proj", "mm.model.fc"),
            ("linear_proj.norm1", "mm.post_fc_norm"),
            ("linear_proj.gate_proj", "mm.gate"),
            ("linear_proj.dense_h_to_4h", "mm.up"),
            ("linear_proj.dense_4h_to_h", "mm.down"),
        ],
    )],
    ..Encoder::VISION
};
