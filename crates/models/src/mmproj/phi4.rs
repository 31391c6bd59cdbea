//! Phi-4 vision: SigLIP 2 without its last layer, for images of any size.

use gguf::Error;
use gguf_checkpoint::Checkpoint;

use super::configs::{EncoderConfigs, LAYERS};
use super::encoder::{Encoder, EncoderMapping, common, patches};
use super::tensor_names::CLIP;
use crate::convert::keys::Keys;
use crate::schema::key;

pub static PHI4: Encoder = Encoder {
    classes: &["Phi4ForCausalLMV"],
    survey,
    keys,
    places: &[
        ("vision_tower.vision_tower.vision_model.", CLIP),
        ("vision_tower.vision_model.", CLIP),
        ("mm_projector.", &[("0", "mm.0"), ("2", "mm.2")]),
    ],
    ignored: &[".vision_model.head.", ".vision_model.post_layernorm."],
    special: |parts, tensor| {
        // Runtimes use the output of the second-to-last layer.
        let layers = EncoderConfigs::layers(&parts.vision)?;
        let rest = tensor.name.split_once("vision_model.encoder.layers.").map(|(_, rest)| rest);
        let layer = rest.and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        Ok((layer == Some(layers)).then_some(EncoderMapping::DROPPED))
    },
    steps: |_, name, shape| {
        Ok(match name {
            "v.patch_embd.weight" => patches(shape, 3),
            _ => Vec::new(),
        })
    },
    ..Encoder::VISION
};

fn survey(parts: &mut EncoderConfigs, checkpoint: &Checkpoint) -> Result<(), Error> {
    let layers = EncoderConfigs::layers(&parts.vision)?;
    let stated = parts.vision.find(LAYERS).map(|(name, _)| name.to_owned());
    if let Some(name) = stated.filter(|_| layers >= 2) {
        parts.vision.set(&name, layers - 1);
    }
    let patch =
        EncoderConfigs::number(&parts.image, &["patch_size"], "the side of a patch in pixels")?;
    parts.vision.set("patch_size", patch);
    const POSITIONS: &str = "vision_model.embeddings.position_embedding.weight";
    let positions = checkpoint.entries.iter().find(|entry| entry.name.ends_with(POSITIONS));
    let positions = positions.and_then(|entry| entry.shape.first().copied()).unwrap_or(0);
    let side = u32::try_from(positions.isqrt()).unwrap_or(u32::MAX);
    parts.vision.set("image_size", side.saturating_mul(patch));
    Ok(())
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "phi4");
    let patch = parts.vision.u32(&["patch_size"])?.unwrap_or(0);
    for (key, field) in [
        ("vision.image_min_pixels", "min_num_patches"),
        ("vision.image_max_pixels", "max_num_patches"),
    ] {
        let stated = parts.image.u32(&[field])?.or(parts.model.u32(&[field])?);
        let number = stated
            .ok_or_else(|| parts.image.missing(field, "the number of patches of an image"))?;
        keys.set(key, number.saturating_mul(patch.saturating_mul(patch)));
    }
    keys.set(key::USE_GELU, true);
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    Ok(())
}
