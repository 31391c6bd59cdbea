//! MiniCPM-V 4.6: SigLIP with a patch merger between its layers.

use gguf::{Array, Error};

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, common};
use super::tensor_names::CLIP;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static MINICPM_V: Encoder = Encoder {
    classes: &["MiniCPMV4_6ForConditionalGeneration"],
    complete: |parts| {
        if let Some(side) = parts.image.u32(&["scale_resolution"])? {
            parts.vision.set("image_size", side);
        }
        Ok(())
    },
    keys,
    places: &[
        (
            "vision_tower.vit_merger.",
            &[
                ("layer_norm1", "v.vit_merger.ln1"),
                ("self_attn.q_proj", "v.vit_merger.attn_q"),
                ("self_attn.k_proj", "v.vit_merger.attn_k"),
                ("self_attn.v_proj", "v.vit_merger.attn_v"),
                ("self_attn.out_proj", "v.vit_merger.attn_out"),
                ("pre_norm", "v.vit_merger.ds_ln"),
                ("linear_1", "v.vit_merger.ds_ffn_up"),
                ("linear_2", "v.vit_merger.ds_ffn_down"),
            ],
        ),
        ("vision_tower.", CLIP),
        ("vpm.", CLIP),
        (
            "merger.mlp.0.",
            &[("pre_norm", "mm.input_norm"), ("linear_1", "mm.up"), ("linear_2", "mm.down")],
        ),
    ],
    special: |parts, tensor| {
        let left_out = is_merged_less(parts)? && tensor.name.contains(".vit_merger.");
        Ok(left_out.then_some(EncoderMapping::DROPPED))
    },
    ..Encoder::VISION
};

/// Returns whether 4 patches are merged into one, instead of 16.
fn is_merged_less(parts: &EncoderConfigs) -> Result<bool, Error> {
    const FIELD: &str = "downsample_mode";
    match parts.image.find(&[FIELD]).map(|(_, mode)| (mode.as_str(), mode)) {
        None | Some((Some("16x"), _)) => Ok(false),
        Some((Some("4x"), _)) => Ok(true),
        Some((_, other)) => Err(parts.image.wrong(FIELD, other, "4x or 16x")),
    }
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "minicpmv4_6");
    let factor = if is_merged_less(parts)? { 2u32 } else { 4 };
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, factor);
    let field = &["insert_layer_id"];
    let layer = parts.model.u32(field)?.or(parts.vision.u32(field)?).unwrap_or(6);
    keys.set(key::VISION_WA_LAYER_INDEXES, Array::from(&[layer as i32][..]));
    keys.set(key::USE_GELU, true);
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    Ok(())
}
