//! Youtu-VL: SigLIP 2 with window attention in most layers.

use gguf::{Array, Error};

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use super::tensor_names::CLIP;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static YOUTU: Encoder = Encoder {
    classes: &["YoutuVLForConditionalGeneration"],
    complete: |parts| {
        parts.vision.default("image_size", 560);
        Ok(())
    },
    keys,
    places: &[
        ("siglip2.vision_model.", CLIP),
        ("merger.", &[("ln_q", "mm.input_norm"), ("mlp.{}", "mm.{}")]),
    ],
    ignored: &["siglip2.vision_model.head.", "embeddings.position_embedding"],
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let vision = &parts.vision;
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "youtuvl");
    let epsilon = vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let activation = vision.find(&["hidden_act"]).map(|(_, name)| name.clone());
    match activation.as_ref().map_or(Some("gelu"), |name| name.as_str()) {
        Some("gelu" | "gelu_pytorch_tanh" | "gelu_fast" | "gelu_new" | "gelu_accurate") => {
            keys.set(key::USE_GELU, true);
        }
        Some("silu") => keys.set(key::USE_SILU, true),
        _ => {
            let stated = activation.unwrap_or_default();
            return Err(vision.wrong("hidden_act", &stated, "gelu or silu"));
        }
    }
    let merged = vision.u32(&["spatial_merge_size"])?.unwrap_or(2);
    keys.set(key::VISION_SPATIAL_MERGE_SIZE, merged);
    keys.set_u32(key::VISION_WINDOW_SIZE, vision.u32(&["window_size"])?);
    const WHOLE: &str = "fullatt_block_indexes";
    let layers = vision.u32s(WHOLE)?;
    let layers = layers.ok_or_else(|| vision.missing(WHOLE, "the layers with full attention"))?;
    let layers: Vec<i32> = layers.into_iter().map(|layer| layer as i32).collect();
    keys.set(key::VISION_WA_LAYER_INDEXES, Array::from(&layers[..]));
    Ok(())
}
