//! Conversion of `Gemma4ForCausalLM` and the text models of its multimodal classes. `rope_freqs`
//! divides the frequencies of dimensions without RoPE in layers with full attention by 1e30; head
//! counts and FFN sizes that differ between layers become arrays.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::{count, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, VocabularyKind, hparams, rope,
    sliding_window,
};
use crate::gemma2::convert::NORMS;
use crate::schema::key;

/// Names of the per-layer input embeddings.
pub(crate) const PER_LAYER: Table = &[
    ("model.embed_tokens_per_layer", "per_layer_token_embd"),
    ("model.per_layer_model_projection", "per_layer_model_proj"),
    ("model.per_layer_projection_norm", "per_layer_proj_norm"),
    ("model.layers.{}.per_layer_input_gate", "blk.{}.inp_gate"),
    ("model.layers.{}.per_layer_projection", "blk.{}.proj"),
    ("model.layers.{}.post_per_layer_input_norm", "blk.{}.post_norm"),
];

const MOE_NAMES: Table = &[
    ("model.layers.{}.router.proj", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.pre_feedforward_layernorm_2", "blk.{}.pre_ffw_norm_2"),
    ("model.layers.{}.post_feedforward_layernorm_1", "blk.{}.post_ffw_norm_1"),
    ("model.layers.{}.post_feedforward_layernorm_2", "blk.{}.post_ffw_norm_2"),
];

/// Checkpoint names without a suffix, and GGUF names.
const PARAMETERS: [(&str, &str); 5] = [
    ("model.layers.{}.layer_scalar", "blk.{}.layer_output_scale.weight"),
    ("model.layers.{}.router.scale", "blk.{}.ffn_gate_inp.scale"),
    ("model.layers.{}.router.per_expert_scale", "blk.{}.ffn_down_exps.scale"),
    ("model.layers.{}.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"),
    ("model.layers.{}.experts.down_proj", "blk.{}.ffn_down_exps.weight"),
];

const EXPERT_SIZE: &[&str] = &["expert_intermediate_size", "moe_intermediate_size"];

const GLOBAL_HEAD_DIM: &str = "global_head_dim";

const GLOBAL_KV_HEADS: &str = "num_global_key_value_heads";

const KV_SHARED_LAYERS: &str = "num_kv_shared_layers";

const DOUBLE_WIDE_MLP: &str = "use_double_wide_mlp";

pub(crate) const ROPE_PARAMETERS: &str = "rope_parameters";

/// Class whose `generation_config.json` lists suppressed tokens.
const UNIFIED_CLASS: &str = "Gemma4UnifiedForConditionalGeneration";

/// Frequency divisor of dimensions without RoPE.
const NO_ROPE: f32 = 1e30;

pub(crate) struct Gemma4;

/// Description of [`Gemma4`].
pub(crate) static GEMMA4: Description = Description {
    classes: &["Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", UNIFIED_CLASS],
    architecture: "gemma4",
    model_type: "gemma4_text",
    vocabulary: VocabularyKind::Gemma4,
    tensor_names: &[NORMS, PER_LAYER, MOE_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EMBEDDING_LENGTH_PER_LAYER_INPUT, "hidden_size_per_layer_input"),
        (key::ATTENTION_SHARED_KV_LAYERS, KV_SHARED_LAYERS),
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
        config.default(KV_SHARED_LAYERS, 0);
        complete_global_attention(config);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = name.strip_suffix(".weight").unwrap_or(name);
        let mapping = PARAMETERS.iter().find_map(|(hf_name, gguf_name)| {
            Some(Mapping::one(filled(gguf_name, &captures(hf_name, name)?), []))
        });
        Ok(mapping)
    }

    // In layers with full attention the last dimensions of a head have no RoPE.
    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        let parameters = config.part(ROPE_PARAMETERS).part("full_attention");
        let share = parameters.f64(&["partial_rotary_factor"])?.unwrap_or(1.0);
        let global = hparams::possible(config, "dimensions of a head", global_head_dim(config)?)?;
        Ok(vec![partial_rope_freqs(global, share)])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export(model, exported)
    }
}

/// Sets the head dimension and KV heads of full attention from `per_layer_config` of new
/// configurations.
fn complete_global_attention(config: &mut Config) {
    let json = config.json();
    let is_global = |layer: &str| {
        let layer = layer.parse::<usize>().ok();
        layer.is_some_and(|layer| json["layer_types"][layer] == "full_attention")
    };
    let layers = json["per_layer_config"].as_object().into_iter().flatten();
    let global: Vec<Value> =
        layers.filter(|(layer, _)| is_global(layer)).map(|(_, of)| of.clone()).collect();
    for (field, of_layer) in
        [(GLOBAL_HEAD_DIM, "head_dim"), (GLOBAL_KV_HEADS, "num_key_value_heads")]
    {
        if let Some(value) = global.iter().find_map(|of| of.get(of_layer)).filter(|v| !v.is_null())
        {
            config.default(field, value.clone());
        }
    }
}

/// Returns the head dimension of layers with full attention.
fn global_head_dim(config: &Config) -> Result<u32, Error> {
    config.require_u32(&[GLOBAL_HEAD_DIM], "the head dimension of layers with full attention")
}

/// Writes the hyper-parameters of Gemma 4.
pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let global = global_head_dim(config)?;
    let local =
        config.require_u32(&["head_dim"], "the head dimension of layers with a sliding window")?;
    keys.stated(config)?;
    let cap = config.f32(&["final_logit_softcapping"])?;
    keys.set_f32(key::FINAL_LOGIT_SOFTCAPPING, cap.filter(|&cap| cap != 0.0));
    keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
    let shared = config.u32(&[KV_SHARED_LAYERS])?.unwrap_or(0);
    keys.set(key::ATTENTION_SHARED_KV_LAYERS, shared);
    let per_layer = config.u32(&["hidden_size_per_layer_input"])?.unwrap_or(0);
    keys.set(key::EMBEDDING_LENGTH_PER_LAYER_INPUT, per_layer);
    let layers = sliding_window::layers(config, 6)?;
    keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&layers[..]));
    for (suffix, width) in [("", global), ("_swa", local)] {
        keys.set(&format!("attention.key_length{suffix}"), width);
        keys.set(&format!("attention.value_length{suffix}"), width);
    }
    keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_SIZE)?);
    if config.bool(DOUBLE_WIDE_MLP)? == Some(true) {
        let width = signed(hparams::feed_forward(config)?);
        let first = layers.len().saturating_sub(shared as usize);
        let ffn_size = |layer| if layer < first { width } else { width.saturating_mul(2) };
        let widths: Vec<i32> = (0..layers.len()).map(ffn_size).collect();
        keys.set(key::FEED_FORWARD_LENGTH, Array::from(&widths[..]));
    }
    if let Some(heads) = config.u32(&[GLOBAL_KV_HEADS])? {
        let local_heads = signed(hparams::head_count_kv(config)?);
        let kv_heads = |is: &bool| if *is { local_heads } else { signed(heads) };
        let heads: Vec<i32> = layers.iter().map(kv_heads).collect();
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
    }
    keys.set(key::ROPE_DIMENSION_COUNT, global);
    let share = config.f64(&["partial_rotary_factor"])?.unwrap_or(1.0);
    keys.set(key::ROPE_DIMENSION_COUNT_SWA, (share * f64::from(local)) as u32);
    if config.class()? == UNIFIED_CLASS {
        let generation = config.file("generation_config.json")?.unwrap_or_default();
        let tokens = generation["suppress_tokens"].as_array();
        let ids = tokens.map(|tokens| tokens.iter().filter_map(|id| id.as_i64()?.try_into().ok()));
        if let Some(ids) = ids.map(Iterator::collect::<Vec<i32>>) {
            keys.set_unprefixed(key::TOKENIZER_GGML_SUPPRESS_TOKENS, Array::from(&ids[..]));
        }
    }
    Ok(())
}

fn signed(number: u32) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// Returns `rope_freqs` of a head of which only a share of the dimensions has RoPE.
pub(crate) fn partial_rope_freqs(width: u32, share: f64) -> (String, Vec<f32>) {
    let rope_pairs = (f64::from(width) * share / 2.0) as usize;
    let factor = |i| if i < rope_pairs { 1.0 } else { NO_ROPE };
    (rope::ROPE_FREQS.to_owned(), (0..width as usize / 2).map(factor).collect())
}

/// Completes the export of a model with the layers of Gemma 4.
pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let metadata = model.metadata();
    let list = |key: &str| {
        let list = metadata.array(&format!("{}.{key}", metadata.architecture()?))?;
        Some(list.iter().map(|value| value.to_u64().unwrap_or(0)).collect::<Vec<_>>())
    };
    let global = count(model, key::ATTENTION_KEY_LENGTH).filter(|&global| global > 0)?;
    let base = |suffix: &str| number(model, &format!("rope.freq_base{suffix}"));
    // The share of dimensions with RoPE stands in the tensor `rope_freqs`, which exports do not
    // read; all published models have 0.25.
    let parameters = json!({
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": base("")},
        "sliding_attention": {"rope_type": "default", "rope_theta": base("_swa")},
    });
    let mut exported = exported
        .patterns(PARAMETERS.map(|(name, _)| name))
        .without(&[key::ATTENTION_KEY_LENGTH, key::ROPE_FREQ_BASE])
        .set(GLOBAL_HEAD_DIM, global)
        .set(ROPE_PARAMETERS, parameters);
    if let Some(widths) = list("feed_forward_length") {
        exported = exported.without(&[key::FEED_FORWARD_LENGTH]);
        exported = exported.set("intermediate_size", widths.first().copied());
        exported = exported.set(DOUBLE_WIDE_MLP, true);
    }
    if let Some(heads) = list("attention.head_count_kv") {
        let architecture = metadata.architecture()?;
        let pattern = format!("{architecture}.attention.sliding_window_pattern");
        let windows = metadata.array(&pattern)?;
        let kv_heads = |is_sliding: bool| {
            let mut layers = heads.iter().zip(windows.iter());
            layers
                .find(|(_, is)| is.to_bool() == Some(is_sliding))
                .map(|(heads, _)| Value::from(*heads))
        };
        exported = exported
            .without(&[key::ATTENTION_HEAD_COUNT_KV])
            .set_some("num_key_value_heads", kv_heads(true))
            .set_some(GLOBAL_KV_HEADS, kv_heads(false));
    }
    Some(sliding_window::export_of_pattern(model, exported))
}
