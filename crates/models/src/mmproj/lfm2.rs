//! LFM2-VL: SigLIP 2, and a two-layer projector behind a pixel shuffle.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common, patches};
use super::tensor_names::{CLIP, TWO_LAYERS};
use crate::convert::keys::Keys;
use crate::schema::key;

pub static LFM2_VL: Encoder = Encoder {
    classes: &["Lfm2VlForConditionalGeneration"],
    complete: |parts| {
        // Images have any size.
        parts.vision.set("image_size", 256);
        Ok(())
    },
    keys,
    places: &[
        ("vision_tower.vision_model.", CLIP),
        ("vision_tower.", CLIP),
        ("multi_modal_projector.", &[("layer_norm", "mm.input_norm")]),
        ("multi_modal_projector.", TWO_LAYERS),
    ],
    steps: |_, name, shape| {
        Ok(match name {
            "v.patch_embd.weight" => patches(shape, 3),
            _ => Vec::new(),
        })
    },
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "lfm2");
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let factor = parts.model.u32(&["downsample_factor"])?.unwrap_or(2);
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, factor);
    keys.set(key::USE_GELU, true);
    // Index of the output layer, counted from the end.
    let layer = parts.model.find(&["vision_feature_layer"]).and_then(|(_, layer)| layer.as_i64());
    let dropped = -(layer.unwrap_or(-1).saturating_add(1));
    let layers = i64::from(EncoderConfigs::layers(&parts.vision)?).saturating_sub(dropped);
    let layers = u32::try_from(layers).map_err(|_| {
        let stated = layer.unwrap_or(-1).into();
        parts.model.wrong("vision_feature_layer", &stated, "a layer of the encoder")
    })?;
    keys.set(key::VISION_BLOCK_COUNT, layers);
    Ok(())
}
