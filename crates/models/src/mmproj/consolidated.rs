//! Pixtral in Mistral's own format (`params.json`), with query and key rows in GGUF's order.

use gguf::Error;
use serde_json::json;

use super::configs::{CLIP_DEVIATION, CLIP_MEAN, EncoderConfigs};
use super::encoder::{Encoder, EncoderMapping, Foreign, common};
use super::pixtral;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static NATIVE: Encoder = Encoder {
    vision: &["vision_encoder"],
    complete,
    keys,
    places: &[
        ("vision_encoder.", TOWER),
        ("vision_language_adapter.", PROJECTOR),
        ("patch_merger.", PROJECTOR),
    ],
    special,
    ..Encoder::VISION
};

const TOWER: Table = &[
    ("patch_conv", "v.patch_embd"),
    ("ln_pre", "v.pre_ln"),
    ("transformer.layers.{}.attention_norm", "v.blk.{}.ln1"),
    ("transformer.layers.{}.ffn_norm", "v.blk.{}.ln2"),
    ("transformer.layers.{}.attention.wq", "v.blk.{}.attn_q"),
    ("transformer.layers.{}.attention.wk", "v.blk.{}.attn_k"),
    ("transformer.layers.{}.attention.wv", "v.blk.{}.attn_v"),
    ("transformer.layers.{}.attention.wo", "v.blk.{}.attn_out"),
    ("transformer.layers.{}.feed_forward.w1", "v.blk.{}.ffn_gate"),
    ("transformer.layers.{}.feed_forward.w2", "v.blk.{}.ffn_down"),
    ("transformer.layers.{}.feed_forward.w3", "v.blk.{}.ffn_up"),
];

const PROJECTOR: Table =
    &[("w_in", "mm.1"), ("w_out", "mm.2"), ("merging_layer", "mm.patch_merger")];

/// Image preprocessing is fixed in the package `mistral-common` (`tokens/tokenizers/image.py`).
fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    parts.image.set("image_mean", CLIP_MEAN.to_vec());
    parts.image.set("image_std", CLIP_DEVIATION.to_vec());
    Ok(())
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    common(parts, keys)?;
    let number = |field, meaning| parts.vision.require_f32(&[field], meaning);
    keys.set(key::PROJECTOR_TYPE, "pixtral");
    let epsilon = parts.text.require_f32(&["rms_norm_eps", "norm_eps"], "what norms add")?;
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    keys.set(key::ROPE_FREQ_BASE, number("rope_theta", "the RoPE base frequency")?);
    keys.set(key::USE_SILU, true);
    let merges = parts.vision.find(&["mm_projector_id"]).is_some_and(|(_, id)| id == "patch_merge");
    if merges {
        let side = parts.vision.require_u32(
            &["spatial_merge_size"],
            "the patches per side that are merged into one token",
        )?;
        keys.set(key::VISION_SPATIAL_MERGE_SIZE, side);
    }
    Ok(())
}

/// Maps the norm before the projector, and the row-break token, which is a token of the text model.
fn special(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    match tensor.name {
        "pre_mm_projector_norm.weight" => Ok(Some(EncoderMapping::one("mm.input_norm.weight", []))),
        "tok_embeddings.weight" => {
            Ok(break_token(parts)?.map(|token| pixtral::row_between(tensor, token)))
        }
        _ => Ok(None),
    }
}

/// Returns the id of the row-break token. If the configuration has a negative number, the tokenizer determines it.
fn break_token(parts: &EncoderConfigs) -> Result<Option<u64>, Error> {
    const FIELD: &str = "image_break_token_id";
    let stated = parts.vision.find(&[FIELD]).and_then(|(_, id)| id.as_i64());
    let stated = stated.ok_or_else(|| parts.vision.missing(FIELD, "the row break token"))?;
    if let Ok(id) = u64::try_from(stated) {
        // 0 is the unknown token.
        return Ok(Some(id).filter(|id| *id > 0));
    }
    let tekken = parts.model.file("tekken.json")?.unwrap_or_default();
    let special = tekken["special_tokens"].as_array();
    let token = special.into_iter().flatten().find(|token| token["token_str"] == "[IMG_BREAK]");
    match token.and_then(|token| token["rank"].as_u64()) {
        Some(id) => Ok(Some(id)),
        None => Err(parts.vision.wrong(FIELD, &json!(stated), "the id of `[IMG_BREAK]`")),
    }
}
