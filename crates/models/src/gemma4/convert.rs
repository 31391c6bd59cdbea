//! Gemma 4: heads of another width in layers without a window, and embeddings for each layer.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::{count, number};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, VocabularyKind, hparams,
    sliding_window,
};
use crate::gemma2::convert::NORMS;
use crate::schema::key;

/// What comes with embeddings for each layer.
pub(crate) const PER_LAYER: Table = &[
    ("model.embed_tokens_per_layer", "per_layer_token_embd"),
    ("model.per_layer_model_projection", "per_layer_model_proj"),
    ("model.per_layer_projection_norm", "per_layer_proj_norm"),
    ("model.layers.{}.per_layer_input_gate", "blk.{}.inp_gate"),
    ("model.layers.{}.per_layer_projection", "blk.{}.proj"),
    ("model.layers.{}.post_per_layer_input_norm", "blk.{}.post_norm"),
];

const EXPERT_NAMES: Table = &[
    ("model.layers.{}.router.proj", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.pre_feedforward_layernorm_2", "blk.{}.pre_ffw_norm_2"),
    ("model.layers.{}.post_feedforward_layernorm_1", "blk.{}.post_ffw_norm_1"),
    ("model.layers.{}.post_feedforward_layernorm_2", "blk.{}.post_ffw_norm_2"),
];

/// Names without an end, and ours.
const PARAMETERS: [(&str, &str); 5] = [
    ("model.layers.{}.layer_scalar", "blk.{}.layer_output_scale.weight"),
    ("model.layers.{}.router.scale", "blk.{}.ffn_gate_inp.scale"),
    ("model.layers.{}.router.per_expert_scale", "blk.{}.ffn_down_exps.scale"),
    ("model.layers.{}.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"),
    ("model.layers.{}.experts.down_proj", "blk.{}.ffn_down_exps.weight"),
];

const EXPERT_WIDTH: &[&str] = &["expert_intermediate_size", "moe_intermediate_size"];

const WIDE: &str = "global_head_dim";

const WIDE_HEADS: &str = "num_global_key_value_heads";

const SHARED: &str = "num_kv_shared_layers";

const DOUBLED: &str = "use_double_wide_mlp";

pub(crate) const PARAMETERS_OF_ROPE: &str = "rope_parameters";

/// Names tokens that must never be drawn.
const UNIFIED: &str = "Gemma4UnifiedForConditionalGeneration";

/// What keeps a dimension from rotating.
const NEVER: f32 = 1e30;

pub(crate) struct Gemma4;

/// Description of [`Gemma4`].
pub(crate) static GEMMA4: Description = Description {
    classes: &["Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", UNIFIED],
    architecture: "gemma4",
    model_type: "gemma4_text",
    vocabulary: VocabularyKind::Gemma4,
    tensor_names: &[NORMS, PER_LAYER, EXPERT_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EMBEDDING_LENGTH_PER_LAYER_INPUT, "hidden_size_per_layer_input"),
        (key::ATTENTION_SHARED_KV_LAYERS, SHARED),
        (key::FINAL_LOGIT_SOFTCAPPING, "final_logit_softcapping"),
        (key::ATTENTION_KEY_LENGTH_SWA, "head_dim"),
        (key::EXPERT_USED_COUNT, "top_k_experts"),
    ],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Gemma4 {
    fn description(&self) -> &'static Description {
        &GEMMA4
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default("sliding_window", 512);
        config.default(SHARED, 0);
        complete_wide(config);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = name.strip_suffix(".weight").unwrap_or(name);
        let found = PARAMETERS.iter().find_map(|(foreign, ours)| {
            Some(Mapping::one(filled(ours, &captures(foreign, name)?), []))
        });
        Ok(found)
    }

    // In layers without a window, the last dimensions of a head do not rotate.
    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        let parameters = config.part(PARAMETERS_OF_ROPE).part("full_attention");
        let share = parameters.f64(&["partial_rotary_factor"])?.unwrap_or(1.0);
        let wide = hparams::possible(config, "dimensions of a head", wide_head(config)?)?;
        Ok(vec![factors(wide, share)])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export(model, exported)
    }
}

/// Newer configurations state what layers without a window have layer by layer.
fn complete_wide(config: &mut Config) {
    let json = config.json();
    let is_wide = |layer: &str| {
        let layer = layer.parse::<usize>().ok();
        layer.is_some_and(|layer| json["layer_types"][layer] == "full_attention")
    };
    let layers = json["per_layer_config"].as_object().into_iter().flatten();
    let wide: Vec<Value> =
        layers.filter(|(layer, _)| is_wide(layer)).map(|(_, of)| of.clone()).collect();
    for (field, of_layer) in [(WIDE, "head_dim"), (WIDE_HEADS, "num_key_value_heads")] {
        if let Some(value) = wide.iter().find_map(|of| of.get(of_layer)).filter(|v| !v.is_null()) {
            config.default(field, value.clone());
        }
    }
}

/// The width of a head in layers without a window.
fn wide_head(config: &Config) -> Result<u32, Error> {
    config.require_u32(&[WIDE], "the width of a head in layers without a window")
}

pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let wide = wide_head(config)?;
    let narrow = config.require_u32(&["head_dim"], "the width of a head")?;
    keys.stated(config)?;
    let cap = config.f32(&["final_logit_softcapping"])?;
    keys.set_f32(key::FINAL_LOGIT_SOFTCAPPING, cap.filter(|&cap| cap != 0.0));
    keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
    let shared = config.u32(&[SHARED])?.unwrap_or(0);
    keys.set(key::ATTENTION_SHARED_KV_LAYERS, shared);
    let per_layer = config.u32(&["hidden_size_per_layer_input"])?.unwrap_or(0);
    keys.set(key::EMBEDDING_LENGTH_PER_LAYER_INPUT, per_layer);
    let layers = sliding_window::layers(config, 6)?;
    keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&layers[..]));
    for (end, width) in [("", wide), ("_swa", narrow)] {
        keys.set(&format!("attention.key_length{end}"), width);
        keys.set(&format!("attention.value_length{end}"), width);
    }
    keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_WIDTH)?);
    if config.bool(DOUBLED)? == Some(true) {
        let width = signed(hparams::feed_forward(config)?);
        let first = layers.len().saturating_sub(shared as usize);
        let of_layer = |layer| if layer < first { width } else { width.saturating_mul(2) };
        let widths: Vec<i32> = (0..layers.len()).map(of_layer).collect();
        keys.set(key::FEED_FORWARD_LENGTH, Array::from(&widths[..]));
    }
    if let Some(heads) = config.u32(&[WIDE_HEADS])? {
        let windowed = signed(hparams::head_count_kv(config)?);
        let of_layer = |is: &bool| if *is { windowed } else { signed(heads) };
        let heads: Vec<i32> = layers.iter().map(of_layer).collect();
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
    }
    keys.set(key::ROPE_DIMENSION_COUNT, wide);
    let share = config.f64(&["partial_rotary_factor"])?.unwrap_or(1.0);
    keys.set(key::ROPE_DIMENSION_COUNT_SWA, (share * f64::from(narrow)) as u32);
    if config.class()? == UNIFIED {
        let generation = config.file("generation_config.json")?.unwrap_or_default();
        let tokens = generation["suppress_tokens"].as_array();
        let ids = tokens.map(|tokens| tokens.iter().filter_map(|id| id.as_i64()?.try_into().ok()));
        if let Some(ids) = ids.map(Iterator::collect::<Vec<i32>>) {
            keys.before_vocabulary("tokenizer.ggml.suppress_tokens", Array::from(&ids[..]));
        }
    }
    Ok(())
}

fn signed(number: u32) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// The factors of frequencies in a head of which a share rotates.
pub(crate) fn factors(width: u32, share: f64) -> (String, Vec<f32>) {
    let rotated = (f64::from(width) * share / 2.0) as usize;
    let factor = |i| if i < rotated { 1.0 } else { NEVER };
    (hparams::ROPE_FREQS.to_owned(), (0..width as usize / 2).map(factor).collect())
}

pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let metadata = model.metadata();
    let list = |key: &str| {
        let list = metadata.array(&format!("{}.{key}", metadata.architecture()?))?;
        Some(list.iter().map(|value| value.to_u64().unwrap_or(0)).collect::<Vec<_>>())
    };
    let wide = count(model, key::ATTENTION_KEY_LENGTH).filter(|&wide| wide > 0)?;
    let base = |end: &str| number(model, &format!("rope.freq_base{end}"));
    // What rotates is in a tensor, which the exporter has no look at: as in all models so far.
    let parameters = json!({
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": base("")},
        "sliding_attention": {"rope_type": "default", "rope_theta": base("_swa")},
    });
    let mut exported = exported
        .patterns(PARAMETERS.map(|(name, _)| name))
        .without(&[key::ATTENTION_KEY_LENGTH, key::ROPE_FREQ_BASE])
        .set(WIDE, wide)
        .set(PARAMETERS_OF_ROPE, parameters);
    if let Some(widths) = list("feed_forward_length") {
        exported = exported.without(&[key::FEED_FORWARD_LENGTH]);
        exported = exported.set("intermediate_size", widths.first().copied());
        exported = exported.set(DOUBLED, true);
    }
    if let Some(heads) = list("attention.head_count_kv") {
        let architecture = metadata.architecture()?;
        let pattern = format!("{architecture}.attention.sliding_window_pattern");
        let windows = metadata.array(&pattern)?;
        let of_kind = |wanted: bool| {
            let mut layers = heads.iter().zip(windows.iter());
            layers
                .find(|(_, is)| is.to_bool() == Some(wanted))
                .map(|(heads, _)| Value::from(*heads))
        };
        exported = exported
            .without(&[key::ATTENTION_HEAD_COUNT_KV])
            .set_some("num_key_value_heads", of_kind(true))
            .set_some(WIDE_HEADS, of_kind(false));
    }
    Some(sliding_window::export_of_pattern(model, exported))
}
