//! Ling 3 VL: Qwen's tower, and a projector beside it.

use gguf::Error;

use super::encoder::{Encoder, common};
use super::parts::Parts;
use super::qwen3_vl;
use super::tensor_names::QWEN;
use crate::convert::hparams::Keys;

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
    ..Encoder::DEFAULT
};

fn keys(parts: &Parts, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set("projector_type", "ling3vl");
    keys.set("use_gelu", true);
    keys.set_u32("vision.spatial_merge_size", parts.vision.u32(&["spatial_merge_size"])?);
    let epsilon = parts.text.f32(&["rms_norm_eps"])?.unwrap_or(1e-6);
    keys.set("vision.attention.layer_norm_epsilon", epsilon);
    Ok(())
}
