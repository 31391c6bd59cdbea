//! Idefics 3 and SmolVLM: SigLIP, and a projection matrix behind a pixel shuffle.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use super::tensor_names::CLIP;
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static IDEFICS3: Encoder = Encoder {
    classes: &["Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"],
    complete: |parts| {
        for (field, value) in [
            ("hidden_size", 1152),
            ("intermediate_size", 3072),
            ("num_hidden_layers", 12),
            ("num_attention_heads", 16),
            ("image_size", 224),
            ("patch_size", 32),
        ] {
            parts.vision.default(field, value);
        }
        Ok(())
    },
    keys,
    places: &[
        ("vision_model.", CLIP),
        ("connector.", &[("modality_projection.proj", "mm.model.fc")]),
    ],
    kept: &[("v.patch_embd.weight", TypeOverride::F32)],
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "idefics3");
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let factor = parts.model.u32(&["scale_factor"])?.unwrap_or(2);
    keys.set(key::VISION_PROJECTOR_SCALE_FACTOR, factor);
    keys.set(key::USE_GELU, true);
    let longest = parts.image.part("size").u32(&["longest_edge"])?;
    let longest = longest.or(parts.vision.u32(&["image_size"])?);
    keys.set_u32(key::VISION_PREPROC_IMAGE_SIZE, longest);
    Ok(())
}
