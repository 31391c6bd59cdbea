//! GLM-4.1V and later: Qwen's vision encoder, and a gated projector.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use super::qwen3_vl;
use super::tensor_names::{GLM, QWEN};
use crate::convert::keys::Keys;
use crate::schema::key;

pub static GLM4V: Encoder = Encoder {
    classes: &[
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
        "GlmOcrForConditionalGeneration",
    ],
    complete: qwen3_vl::complete,
    keys: |parts, keys| projected(parts, keys, "glm4v"),
    places: &[("visual.", GLM), ("visual.", QWEN)],
    special: qwen3_vl::special,
    ..Encoder::VISION
};

pub static GLM5_NEXT: Encoder = Encoder {
    classes: &["Glm5NextForConditionalGeneration"],
    keys: |parts, keys| {
        projected(parts, keys, "glm5v")?;
        let merged = parts.vision.u32(&["spatial_merge_size"])?.unwrap_or(2);
        keys.set(key::VISION_SPATIAL_MERGE_SIZE, merged);
        keys.set_f32(key::VISION_SWIGLU_CLAMP, parts.vision.f32(&["swiglu_limit"])?);
        let patch = parts.image.u32(&["patch_size"])?.unwrap_or(14);
        let side = patch.saturating_mul(parts.image.u32(&["merge_size"])?.unwrap_or(2));
        for (key, field) in [
            ("vision.image_min_pixels", "min_image_tokens"),
            ("vision.image_max_pixels", "max_image_tokens"),
        ] {
            let tokens = parts.image.u32(&[field])?;
            let pixels = tokens.map(|tokens| tokens.saturating_mul(side.saturating_mul(side)));
            keys.set_u32(key, pixels);
        }
        Ok(())
    },
    ..GLM4V
};

fn projected(parts: &EncoderConfigs, keys: &mut Keys, projector: &str) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, projector);
    parts.activation(keys)?;
    let epsilon = parts.vision.f32(&["rms_norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    Ok(())
}
