//! InternVL: a vision transformer with layer scales, and a two-layer projector behind a pixel shuffle.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common, divided};
use super::tensor_names::{CLIP, layer_of};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static INTERNVL: Encoder = Encoder {
    classes: &["InternVisionModel"],
    complete: |parts| {
        for field in ["image_size", "patch_size"] {
            let stated = parts.vision.find(&[field]).and_then(|(_, sides)| sides.get(0)).cloned();
            if let Some(side) = stated {
                parts.vision.set(field, side);
            }
        }
        Ok(())
    },
    keys,
    places: &[
        ("vision_model.", TOWER),
        ("vision_model.", CLIP),
        ("vision_tower.", OF_TRANSFORMERS),
        ("mlp1.", &[("{}", "mm.model.mlp.{}")]),
        (
            "multi_modal_projector.",
            &[
                ("layer_norm", "mm.model.mlp.0"),
                ("linear_1", "mm.model.mlp.1"),
                ("linear_2", "mm.model.mlp.3"),
            ],
        ),
    ],
    special: |_, tensor| {
        let found = layer_of(tensor.name, "vision_model.encoder.layers.{}.attn.qkv");
        Ok(found.map(|(layer, end)| {
            divided(["q", "k", "v"].map(|x| format!("v.blk.{layer}.attn_{x}.{end}")), tensor.shape)
        }))
    },
    ..Encoder::VISION
};

const TOWER: Table = &[
    ("embeddings.position_embedding", "v.position_embd.weight"),
    ("encoder.layers.{}.norm1", "v.blk.{}.ln1"),
    ("encoder.layers.{}.norm2", "v.blk.{}.ln2"),
    ("encoder.layers.{}.attn.proj", "v.blk.{}.attn_out"),
    ("encoder.layers.{}.attn.q_norm", "v.blk.{}.attn_q_norm"),
    ("encoder.layers.{}.attn.k_norm", "v.blk.{}.attn_k_norm"),
    ("encoder.layers.{}.ls1", "v.blk.{}.ls1.weight"),
    ("encoder.layers.{}.ls2", "v.blk.{}.ls2.weight"),
];

const OF_TRANSFORMERS: Table = &[
    ("embeddings.cls_token", "v.class_embd"),
    ("embeddings.patch_embeddings.projection", "v.patch_embd"),
    ("embeddings.position_embeddings", "v.position_embd.weight"),
    ("encoder.layer.{}.layernorm_before", "v.blk.{}.ln1"),
    ("encoder.layer.{}.layernorm_after", "v.blk.{}.ln2"),
    ("encoder.layer.{}.attention.q_proj", "v.blk.{}.attn_q"),
    ("encoder.layer.{}.attention.k_proj", "v.blk.{}.attn_k"),
    ("encoder.layer.{}.attention.v_proj", "v.blk.{}.attn_v"),
    ("encoder.layer.{}.attention.q_norm", "v.blk.{}.attn_q_norm"),
    ("encoder.layer.{}.attention.k_norm", "v.blk.{}.attn_k_norm"),
    ("encoder.layer.{}.attention.projection_layer", "v.blk.{}.attn_out"),
    ("encoder.layer.{}.mlp.fc1", "v.blk.{}.ffn_up"),
    ("encoder.layer.{}.mlp.fc2", "v.blk.{}.ffn_down"),
    ("encoder.layer.{}.lambda_1", "v.blk.{}.ls1.weight"),
    ("encoder.layer.{}.lambda_2", "v.blk.{}.ls2.weight"),
];

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "internvl");
    let epsilon = parts.vision.require_f32(&["layer_norm_eps"], "epsilon of the norms")?;
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    parts.activation(keys)?;
    let ratio =
        parts.model.require_f64(&["downsample_ratio"], "the downsampling factor of images")?;
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, (1.0 / ratio) as u32);
    for (key, field) in [
        ("vision.preproc_min_tiles", "min_dynamic_patch"),
        ("vision.preproc_max_tiles", "max_dynamic_patch"),
    ] {
        keys.set_u32(key, parts.model.u32(&[field])?.filter(|tiles| *tiles > 0));
    }
    Ok(())
}
