//! Pixtral, the vision encoder of Mistral's and other models, for images of any size.

use gguf::Error;
use gguf_pipeline::Step;
use serde_json::Value;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common, reshaped};
use super::tensor_names::TWO_LAYERS;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static PIXTRAL: Encoder = Encoder {
    classes: &["LlavaForConditionalGeneration", "Mistral3ForConditionalGeneration"],
    complete,
    keys: |parts, keys| keys_of(parts, keys, "pixtral"),
    places: &[
        ("vision_tower.", TOWER),
        ("multi_modal_projector.", PROJECTOR),
        ("multi_modal_projector.", TWO_LAYERS),
    ],
    special: between_rows,
    steps: |parts, name, _| rotated(parts, name),
    ..Encoder::VISION
};

pub static LIGHT_ON_OCR: Encoder = Encoder {
    classes: &["LightOnOCRForConditionalGeneration"],
    keys: |parts, keys| keys_of(parts, keys, "lightonocr"),
    places: &[
        ("vision_encoder.", TOWER),
        ("vision_projection.", PROJECTOR),
        ("vision_projection.", TWO_LAYERS),
        ("vision_tower.", TOWER),
        ("multi_modal_projector.", PROJECTOR),
        ("multi_modal_projector.", TWO_LAYERS),
    ],
    special: |_, _| Ok(None),
    ..PIXTRAL
};

const TOWER: Table = &[
    ("patch_conv", "v.patch_embd"),
    ("ln_pre", "v.pre_ln"),
    ("transformer.layers.{}.attention_norm", "v.blk.{}.ln1"),
    ("transformer.layers.{}.ffn_norm", "v.blk.{}.ln2"),
    ("transformer.layers.{}.attention.q_proj", "v.blk.{}.attn_q"),
    ("transformer.layers.{}.attention.k_proj", "v.blk.{}.attn_k"),
    ("transformer.layers.{}.attention.v_proj", "v.blk.{}.attn_v"),
    ("transformer.layers.{}.attention.o_proj", "v.blk.{}.attn_out"),
    ("transformer.layers.{}.feed_forward.gate_proj", "v.blk.{}.ffn_gate"),
    ("transformer.layers.{}.feed_forward.up_proj", "v.blk.{}.ffn_up"),
    ("transformer.layers.{}.feed_forward.down_proj", "v.blk.{}.ffn_down"),
];

const PROJECTOR: Table =
    &[("norm", "mm.input_norm"), ("patch_merger.merging_layer", "mm.patch_merger")];

fn complete(parts: &mut EncoderConfigs) -> Result<(), Error> {
    let kind = parts.vision.find(&["model_type"]).and_then(|(_, kind)| kind.as_str());
    if kind != Some("pixtral") {
        let stated = kind.map_or(Value::Null, Value::from);
        return Err(parts.vision.wrong(
            "model_type",
            &stated,
            "pixtral, the only supported encoder",
        ));
    }
    for (field, value) in [
        ("hidden_size", 1024),
        ("intermediate_size", 4096),
        ("num_hidden_layers", 24),
        ("num_attention_heads", 16),
        ("image_size", 1024),
        ("patch_size", 16),
    ] {
        parts.vision.default(field, value);
    }
    parts.vision.default("hidden_act", "gelu");
    if parts.model.find(&["model_type"]).is_some_and(|(_, kind)| kind == "mistral3") {
        parts.model.default("spatial_merge_size", 2);
    }
    Ok(())
}

fn keys_of(parts: &EncoderConfigs, keys: &mut Keys, projector: &str) -> Result<(), Error> {
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, projector);
    let epsilon = parts.vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    parts.activation(keys)?;
    keys.set_u32(key::VISION_SPATIAL_MERGE_SIZE, parts.model.u32(&["spatial_merge_size"])?);
    Ok(())
}

/// Returns the steps for query and key rows, whose RoPE halves become interleaved pairs.
fn rotated(parts: &EncoderConfigs, name: &str) -> Result<Vec<Step>, Error> {
    if !(name.contains(".attn_q.") || name.contains(".attn_k.")) {
        return Ok(Vec::new());
    }
    let heads =
        parts.vision.require_u32(&["num_attention_heads"], "the number of attention heads")?;
    Ok(vec![Step::InterleaveHalves { heads: heads.into() }])
}

/// Maps the token embedding of the text model to the row-break token.
fn between_rows(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    const TOKEN: &str = "[IMG_BREAK]";
    if !tensor.name.ends_with("embed_tokens.weight") {
        return Ok(None);
    }
    let Some(token) = token(parts, TOKEN)? else {
        let what = format!("has no token `{TOKEN}`, the row break of images");
        let help = "take the tokenizer's files from the model's repository";
        return Err(Error::input("vocabulary-other-model", parts.model.path(), what, help));
    };
    Ok(Some(row_between(tensor, token)))
}

/// Returns the row of that token in the token embedding.
pub fn row_between(tensor: &Foreign, token: u64) -> EncoderMapping {
    let width = tensor.shape.first().copied().unwrap_or(0);
    let mut steps = vec![Step::Pick { groups: 1, start: token, len: 1 }];
    steps.extend(reshaped(&[width, 1], &[width]));
    EncoderMapping::one("v.token_embd.img_break", steps)
}

/// Returns the id of a special token in the tokenizer files.
fn token(parts: &EncoderConfigs, text: &str) -> Result<Option<u64>, Error> {
    let stated = parts.model.file("tokenizer_config.json")?.unwrap_or_default();
    let decoder = stated["added_tokens_decoder"].as_object();
    let by_id = decoder.into_iter().flatten().find(|(_, token)| token["content"] == text);
    if let Some((id, _)) = by_id {
        return Ok(id.parse().ok());
    }
    let tokenizer = parts.model.file("tokenizer.json")?.unwrap_or_default();
    let added = tokenizer["added_tokens"].as_array();
    let token = added.into_iter().flatten().find(|token| token["content"] == text);
    Ok(token.and_then(|token| token["id"].as_u64()))
}
