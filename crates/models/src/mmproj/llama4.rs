//! Llama 4: a vision transformer with RoPE, and an adapter behind a pixel shuffle.

use gguf::Error;
use serde_json::Value;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static LLAMA4: Encoder = Encoder {
    classes: &["Llama4ForConditionalGeneration"],
    complete: |parts| {
        for (field, value) in [
            ("hidden_size", 768),
            ("intermediate_size", 5632),
            ("num_hidden_layers", 34),
            ("num_attention_heads", 16),
            ("image_size", 448),
            ("patch_size", 14),
        ] {
            parts.vision.default(field, value);
        }
        Ok(())
    },
    keys,
    places: &[("vision_model.", TOWER), ("multi_modal_projector.", &[("linear_1", "mm.model.fc")])],
    ..Encoder::VISION
};

const TOWER: Table = &[
    ("class_embedding", "v.class_embd"),
    ("patch_embedding.linear", "v.patch_embd"),
    ("positional_embedding_vlm", "v.position_embd.weight"),
    ("layernorm_pre", "v.pre_ln"),
    ("layernorm_post", "v.post_ln"),
    ("model.layers.{}.input_layernorm", "v.blk.{}.ln1"),
    ("model.layers.{}.post_attention_layernorm", "v.blk.{}.ln2"),
    ("model.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"),
    ("model.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"),
    ("model.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"),
    ("model.layers.{}.self_attn.o_proj", "v.blk.{}.attn_out"),
    ("model.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"),
    ("model.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"),
    ("vision_adapter.mlp.fc{}", "mm.model.mlp.{}"),
];

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let vision = &parts.vision;
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "llama4");
    let epsilon = vision.f32(&["norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let ratio = vision.f64(&["pixel_shuffle_ratio"])?.unwrap_or(0.5);
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, (1.0 / ratio) as u32);
    match vision.find(&["hidden_act"]).map(|(_, name)| name.clone()) {
        None => keys.set(key::USE_GELU, true),
        Some(Value::String(name)) if name == "gelu" => keys.set(key::USE_GELU, true),
        Some(other) => return Err(vision.wrong("hidden_act", &other, "gelu")),
    }
    Ok(())
}
