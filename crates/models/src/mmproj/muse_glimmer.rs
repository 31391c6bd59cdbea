//! Muse Glimmer: temporal patches are summed, and RoPE halves become interleaved pairs.

use gguf::{Error, Shape};
use gguf_pipeline::Step;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common};
use crate::convert::keys::Keys;
use crate::schema::key;

const PATCHES: &str = "vision_tower.patch_embedder.patch_embedding.weight";

pub static MUSE_GLIMMER: Encoder = Encoder {
    classes: &["MuseGlimmerForConditionalGeneration"],
    complete: |parts| {
        let number = |field: &str| {
            EncoderConfigs::number(&parts.vision, &[field], "a size of the vision encoder")
        };
        let patches = number("pos_emb_height")?.saturating_mul(number("merge_size")?);
        let side = patches.saturating_mul(number("patch_size")?);
        parts.vision.set("image_size", side);
        Ok(())
    },
    keys,
    places: &[
        (
            "vision_tower.",
            &[
                ("patch_embedder.patch_embedding", "v.patch_embd"),
                ("patch_embedder.position_embedding_table", "v.position_embd"),
                ("layers.{}.norm1", "v.blk.{}.ln1"),
                ("layers.{}.norm2", "v.blk.{}.ln2"),
                ("layers.{}.attn.q_proj", "v.blk.{}.attn_q"),
                ("layers.{}.attn.k_proj", "v.blk.{}.attn_k"),
                ("layers.{}.attn.v_proj", "v.blk.{}.attn_v"),
                ("layers.{}.attn.proj", "v.blk.{}.attn_out"),
                ("layers.{}.mlp.fc1", "v.blk.{}.ffn_up"),
                ("layers.{}.mlp.fc2", "v.blk.{}.ffn_down"),
                ("ln_pre", "v.pre_ln"),
                ("ln_post", "v.post_ln"),
            ],
        ),
        ("vision_adapter.", &[("fc1", "mm.0"), ("fc2", "mm.1")]),
        ("vision_projection", &[("", "mm.2")]),
    ],
    special: patches,
    steps: |parts, name, _| {
        let rotates = name.contains(".attn_q.") || name.contains(".attn_k.");
        let heads =
            EncoderConfigs::number(&parts.vision, &["num_attention_heads"], "attention heads")?;
        let step = Step::InterleaveHalves { heads: heads.into() };
        Ok(Vec::from_iter(rotates.then_some(step)))
    },
    ..Encoder::VISION
};

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "muse-glimmer");
    let epsilon = parts.vision.require_f32(&["layer_norm_eps"], "epsilon of the norms")?;
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    let merged = EncoderConfigs::number(&parts.vision, &["merge_size"], "patches in one")?;
    keys.set(key::VISION_SPATIAL_MERGE_SIZE, merged);
    Ok(())
}

/// Sums the weights of temporal patches, which is equivalent for a still image.
fn patches(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    if tensor.name != PATCHES {
        return Ok(None);
    }
    let number =
        |field: &str| EncoderConfigs::number(&parts.vision, &[field], "a size of the patches");
    let (times, side) = (u64::from(number("patch_temporal")?), u64::from(number("patch_size")?));
    let (len, rows) = (3 * side * side, tensor.shape.last().copied().unwrap_or(0));
    let shape = Shape::new(&[side, side, 3, rows]).filter(|_| {
        times > 0 && tensor.shape.iter().product::<u64>() == times.saturating_mul(len * rows)
    });
    let Some(shape) = shape else {
        let stated = format!("{:?} for {times} patches of {side} pixels", tensor.shape).into();
        return Err(parts.vision.wrong(
            "patch_temporal",
            &stated,
            "the number of frames per patch of the weights",
        ));
    };
    let values = tensor.vector(PATCHES)?;
    let len = len as usize;
    let summed = values
        .chunks_exact(len * times as usize)
        .flat_map(|patch| (0..len).map(move |i| patch.iter().skip(i).step_by(len).sum::<f32>()));
    Ok(Some(EncoderMapping::Tensor("v.patch_embd.weight".to_owned(), shape, summed.collect())))
}
