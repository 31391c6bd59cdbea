//! MiniMax M3: CLIP with three-dimensional RoPE, over frames.

use gguf::Error;
use gguf_pipeline::Step;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, common, frames};
use super::tensor_names::{CLIP, TWO_LAYERS};
use crate::convert::keys::Keys;
use crate::schema::key;

pub static MINIMAX_M3: Encoder = Encoder {
    classes: &["MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3VLForConditionalGeneration"],
    keys,
    places: &[
        ("vision_tower.vision_model.", CLIP),
        ("multi_modal_projector.", TWO_LAYERS),
        ("patch_merge_mlp.", &[("linear_1", "mm.merger.fc1"), ("linear_2", "mm.merger.fc2")]),
    ],
    special: |_, tensor| {
        Ok(match tensor.name {
            "vision_tower.vision_model.embeddings.patch_embedding.weight" => frames(tensor.shape),
            _ => None,
        })
    },
    steps: rotated,
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "minimax_m3");
    keys.set(key::USE_GELU, true);
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let merged = parts.vision.part("img_token_compression_config").u32(&["spatial_merge_size"])?;
    keys.set(key::VISION_SPATIAL_MERGE_SIZE, merged.unwrap_or(2));
    Ok(())
}

/// Returns the steps for query and key rows: RoPE halves of time, row and column become interleaved pairs.
fn rotated(parts: &EncoderConfigs, name: &str, shape: &[u64]) -> Result<Vec<Step>, Error> {
    if !(name.contains(".attn_q.") || name.contains(".attn_k.")) {
        return Ok(Vec::new());
    }
    let heads =
        parts.vision.require_u32(&["num_attention_heads"], "the number of attention heads")?;
    let rows = shape.get(usize::from(shape.len() > 1)).copied().unwrap_or(0);
    let head = rows / u64::from(heads);
    // Each axis has a third of the head, as pairs.
    let half = 2 * (head / 2) / 3 / 2;
    Ok(vec![Step::Exchange { groups: heads.into(), start: 0, outer: 2, inner: 3, len: half }])
}
