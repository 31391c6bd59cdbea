//! Gemma 3: SigLIP, and a projection matrix behind pooling.

use gguf::Error;
use gguf_pipeline::{Function, Step};

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common};
use super::tensor_names::CLIP;
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static GEMMA3: Encoder = Encoder {
    classes: &["Gemma3ForConditionalGeneration"],
    complete: |parts| {
        for (field, value) in [("image_size", 224), ("patch_size", 16), ("hidden_size", 768)] {
            parts.vision.default(field, value);
        }
        for (field, value) in
            [("intermediate_size", 3072), ("num_hidden_layers", 12), ("num_attention_heads", 12)]
        {
            parts.vision.default(field, value);
        }
        Ok(())
    },
    keys,
    places: &[
        ("vision_tower.vision_model.", CLIP),
        ("vision_tower.", CLIP),
        ("vision_model.", CLIP),
        (
            "multi_modal_projector.",
            &[
                ("mm_input_projection_weight", "mm.input_projection.weight"),
                ("mm_soft_emb_norm", "mm.soft_emb_norm"),
            ],
        ),
    ],
    ignored: &["vision_model.head."],
    steps: |_, name, _| {
        Ok(match name {
            "mm.soft_emb_norm.weight" => vec![Step::Map(Function::PlusOne)],
            _ => Vec::new(),
        })
    },
    kept: &[
        ("mm.input_projection.weight", TypeOverride::F16),
        ("v.patch_embd.weight", TypeOverride::F32),
        ("v.position_embd.weight", TypeOverride::F32),
    ],
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "gemma3");
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    keys.set(key::USE_GELU, true);
    keys.set_u32(key::VISION_PROJECTOR_SCALE_FACTOR, parts.pooled()?);
    Ok(())
}
