//! Janus Pro: SigLIP, and a projector of any number of layers. The image generator is not converted.

use gguf::Error;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, common};
use super::tensor_names::{CLIP, captured};
use crate::convert::keys::Keys;
use crate::schema::key;

pub static JANUS: Encoder = Encoder {
    classes: &["JanusForConditionalGeneration"],
    complete: |parts| {
        for (field, value) in [
            ("hidden_size", 1024),
            ("num_hidden_layers", 24),
            ("num_attention_heads", 16),
            ("image_size", 384),
            ("patch_size", 16),
        ] {
            parts.vision.default(field, value);
        }
        parts.vision.default("hidden_act", "gelu");
        if parts.vision.find(&["intermediate_size"]).is_none() {
            let width = parts.vision.f64(&["hidden_size"])?.unwrap_or(0.0);
            let ratio = parts.vision.f64(&["mlp_ratio"])?.unwrap_or(4.0);
            parts.vision.set("intermediate_size", (width * ratio).round_ties_even() as u32);
        }
        Ok(())
    },
    keys,
    places: &[
        ("vision_model.", &[("encoder.layers.{}.self_attn.projection_layer", "v.blk.{}.attn_out")]),
        ("vision_model.", CLIP),
        ("aligner.", &[("fc1", "mm.0")]),
    ],
    special: |_, tensor| {
        let found = captured(tensor.name, &[("aligner.hidden_layers.{}", "mm")]);
        // The first layer has another name.
        let layer = |numbers: &[u32]| numbers.first().map_or(1, |layer| layer.saturating_add(1));
        Ok(found.map(|(numbers, end, ours)| {
            EncoderMapping::one(format!("{ours}.{}.{end}", layer(&numbers)), [])
        }))
    },
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "janus_pro");
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    parts.activation(keys)
}
