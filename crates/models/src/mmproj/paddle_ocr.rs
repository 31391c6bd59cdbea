//! PaddleOCR-VL: SigLIP for images of any size.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use super::tensor_names::CLIP;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static PADDLE_OCR: Encoder = Encoder {
    classes: &["PaddleOCRVisionModel"],
    complete: |parts| {
        let most = EncoderConfigs::number(
            &parts.image,
            &["max_pixels"],
            "the number of pixels of an image",
        )?;
        parts.vision.set("image_size", most.isqrt());
        Ok(())
    },
    keys,
    places: &[
        ("visual.vision_model.", CLIP),
        ("mlp_AR.", &[("pre_norm", "mm.input_norm"), ("linear_{}", "mm.{}")]),
    ],
    ignored: &["packing_position_embedding", "vision_model.head"],
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "paddleocr");
    let number =
        |field| EncoderConfigs::number(&parts.image, &[field], "the number of pixels of an image");
    keys.set(key::VISION_IMAGE_MAX_PIXELS, number("max_pixels")?);
    keys.set(key::VISION_IMAGE_MIN_PIXELS, number("min_pixels")?);
    keys.set(key::USE_GELU, true);
    let epsilon = parts.vision.f32(&["rms_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    Ok(())
}
