//! Drafts of Gemma 4: DSpark's kind, and assistants, which read keys and values of their target.

use gguf::Error;
use gguf_checkpoint::config::Config;
use serde_json::Value;

use super::gemma4::{self, PARAMETERS_OF_ROPE};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, captures};
use super::{Family, Mapping, dflash, gemma};

const LAYER_SCALE: &str = "layers.{}.layer_scalar";
const WIDE: &str = "global_head_dim";
const MASK: &str = "mask_token_id";
const ROPE: &str = PARAMETERS_OF_ROPE;
/// The share of a head that rotates, unless it is stated.
const SHARE: f64 = 0.25;

pub(super) static DSPARK: Family = Family {
    classes: &["Gemma4DSparkModel"],
    model_type: "gemma4_text",
    names: &[gemma::NORMS, dflash::NAMES, LLAMA_LIKE],
    complete,
    survey: dflash::survey_confidence,
    keys,
    last_keys: |config, keys| {
        let own = config.part(dflash::OWN).u32(&[MASK])?;
        let token = match own.or(config.u32(&[MASK])?) {
            Some(token) => token,
            None => return Err(config.missing(MASK, "the token that stands for a guess")),
        };
        keys.set_whole("tokenizer.ggml.mask_token_id", token);
        Ok(())
    },
    special,
    computed,
    export: |_, _| None,
    ..dflash::DFLASH
};

fn complete(config: &mut Config) -> Result<(), Error> {
    for (field, expected) in [("attention_bias", false), ("enable_moe_block", false)] {
        hyper::expect(config, field, expected)?;
    }
    if config.bool("attention_k_eq_v")? != Some(true) {
        return Err(hyper::not_computed(config, "attention_k_eq_v", false));
    }
    let kinds = config.find(&["layer_types"]).and_then(|(_, kinds)| kinds.as_array());
    let others = |kinds: &&Vec<Value>| kinds.iter().any(|kind| kind != "full_attention");
    if kinds.is_none_or(|kinds| others(&kinds)) {
        let stated = kinds.map_or(Value::Null, |kinds| kinds.clone().into());
        return Err(hyper::not_computed(config, "layer_types", stated));
    }
    if let Some(cap) = config.f32(&["final_logit_softcapping"])?.filter(|&cap| cap != 0.0) {
        return Err(hyper::not_computed(config, "final_logit_softcapping", cap));
    }
    let all = config.part(ROPE);
    let stated = |of: &Config| of.json().as_object().filter(|fields| !fields.is_empty()).cloned();
    let rope = stated(&all.part("full_attention")).or(stated(&all)).unwrap_or_else(|| {
        let usual = [
            ("rope_type", Value::from("proportional")),
            ("partial_rotary_factor", SHARE.into()),
            ("rope_theta", 1e6.into()),
        ];
        usual.map(|(field, value)| (field.to_owned(), value)).into_iter().collect()
    });
    let kind = rope.get("rope_type").cloned().unwrap_or_default();
    if kind != "proportional" && kind != "default" {
        return Err(hyper::not_computed(config, "rope_type", kind));
    }
    config.set(ROPE, rope);
    Ok(())
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    dflash::keys(config, keys)?;
    let width = wide_head(config)?;
    let heads = config.require_u32(&["num_global_key_value_heads"], "heads of keys")?;
    keys.set("attention.head_count_kv", heads);
    keys.set("attention.key_length", width);
    keys.set("attention.value_length", width);
    keys.set("rope.dimension_count", width);
    keys.set("embedding_scale", f64::from(hyper::width(config)?).sqrt() as f32);
    keys.set("attention.scale", 1.0f32);
    keys.set("hidden_activation", "gelu_pytorch_tanh");
    keys.set("sample_from_anchor", config.bool("sample_from_anchor")?.unwrap_or(true));
    keys.set(dflash::CONFIDENCE, config.bool(dflash::CONFIDENCE)?.unwrap_or(false));
    Ok(())
}

fn wide_head(config: &Config) -> Result<u32, Error> {
    let width = config.require_u32(&[WIDE], "the width of a head")?;
    hyper::possible(config, "dimensions of a head", width)
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let bare = name.strip_prefix("model.").unwrap_or(name);
    let stem = bare.strip_suffix(".weight").unwrap_or(bare);
    if let Some(&[block]) = captures(LAYER_SCALE, stem).as_deref() {
        return Ok(Some(Mapping::one(format!("blk.{block}.layer_output_scale.weight"), [])));
    }
    match bare.strip_prefix("confidence_proj.") {
        Some(end) => Ok(Some(Mapping::one(format!("conf_proj.{end}"), []))),
        None => dflash::special(config, name),
    }
}

/// The last dimensions of a head do not rotate.
fn computed(config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
    let rope = config.part(ROPE);
    if rope.json()["rope_type"] != "proportional" {
        return Ok(Vec::new());
    }
    let share = rope.f64(&["partial_rotary_factor"])?.unwrap_or(SHARE);
    Ok(vec![gemma4::factors(wide_head(config)?, share)])
}

const ASSISTANT_NAMES: Table =
    &[("pre_projection", "nextn.pre_projection"), ("post_projection", "nextn.post_projection")];

/// Assistants, which have no keys and values of their own.
pub(super) static ASSISTANT: Family = Family {
    classes: &["Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"],
    architecture: "gemma4-assistant",
    model_type: "gemma4_assistant",
    names: &[ASSISTANT_NAMES, gemma::NORMS, LLAMA_LIKE],
    keys: |config, keys| {
        gemma4::keys(config, keys)?;
        let width = config.require_u32(&["backbone_hidden_size"], "the width of the target")?;
        keys.set("embedding_length_out", width);
        keys.set("nextn_predict_layers", hyper::block_count(config)?);
        Ok(())
    },
    leaves_out: |_, name| name.contains("masked_embedding"),
    export: |model, exported| {
        let width = super::exported::count(model, "embedding_length_out")?;
        Some(gemma4::export(model, exported)?.set("backbone_hidden_size", width))
    },
    ..gemma4::GEMMA4
};
