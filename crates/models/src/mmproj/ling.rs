//! Ling 3 VL: Qwen's vision encoder, and a separate projector.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use super::qwen3_vl;
use super::tensor_names::QWEN;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static LING3_VL: Encoder = Encoder {
    classes: &["BailingMoeV3VLForConditionalGeneration"],
    complete: qwen3_vl::complete,
    keys,
    places: &[
        ("visual.merger.", &[("norm", "mm.input_norm")]),
        ("visual.", QWEN),
        ("linear_proj.", &[("{}", "mm.{}")]),
    ],
    special: qwen3_vl::special,
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "ling3vl");
    keys.set(key::USE_GELU, true);
    keys.set_u32(key::VISION_SPATIAL_MERGE_SIZE, parts.vision.u32(&["spatial_merge_size"])?);
    let epsilon = parts.text.f32(&["rms_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    Ok(())
}
