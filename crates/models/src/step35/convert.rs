//! Conversion of Step 3.5 and 3.7. Head counts are arrays, as sliding-window layers have other
//! counts; rotary factors must be those that runtimes hard-code. MTP layers become the last
//! layers.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, export, hparams, moe, mtp, rope, steps,
};
use crate::schema::{HyperParameters, key};

const NAMES: Table = &[
    ("model.layers.{}.self_attn.g_proj", "blk.{}.attn_gate"),
    ("model.layers.{}.moe.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.moe.gate_proj", "blk.{}.ffn_gate_exps"),
    ("model.layers.{}.moe.up_proj", "blk.{}.ffn_up_exps"),
    ("model.layers.{}.moe.down_proj", "blk.{}.ffn_down_exps"),
    ("model.layers.{}.share_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.share_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.share_expert.down_proj", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.transformer.shared_head.norm", "blk.{}.nextn.shared_head_norm"),
    ("model.layers.{}.transformer.shared_head.output", "blk.{}.nextn.shared_head_head"),
];

const ROUTER_BIAS: &str = "model.layers.{}.moe.router_bias";

const LAYER_TYPES: &str = "layer_types";

const SLIDING_ATTENTION: &str = "sliding_attention";

const ROTARY_FACTORS: &str = "partial_rotary_factors";

const SLIDING_SETTING: &str = "attention_other_setting";

const BASE: &str = "rope_theta";

const SLIDING_BASE: &str = "local_rope_theta";

const MOE_LAYERS: &str = "moe_layers_enum";

const SWIGLU_LIMITS: [(&str, &str); 2] =
    [("swiglu_clamp_exp", "swiglu_limits"), ("swiglu_clamp_shexp", "swiglu_limits_shared")];

/// Rotary factor of full-attention layers.
const FULL_ROTARY_FACTOR: f64 = 0.5;

pub(crate) struct Step35;

/// Description of [`Step35`].
pub(crate) static STEP35: Description = Description {
    classes: &["Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"],
    architecture: "step35",
    model_type: "step3p5",
    pre_tokenizers: &["deepseek-v3"],
    tensor_names: &[NAMES, mtp::NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "moe_num_experts"),
        (key::EXPERT_USED_COUNT, "moe_top_k"),
        (key::EXPERT_SHARED_FEED_FORWARD_LENGTH, "share_expert_dim"),
        (key::EXPERT_WEIGHTS_SCALE, "moe_router_scaling_factor"),
        (key::EXPERT_WEIGHTS_NORM, "norm_expert_weight"),
        (key::MOE_EVERY_N_LAYERS, "moe_every_n_layer"),
        (key::NEXTN_PREDICT_LAYERS, mtp::COUNT),
    ],
    ..Description::DECODER
};

impl Converter for Step35 {
    fn description(&self) -> &'static Description {
        &STEP35
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        // Two bases: of full-attention layers and of sliding-window layers.
        let bases = config.find(&[BASE]).and_then(|(_, bases)| bases.as_array());
        let bases = bases.map(|bases| [bases.first().cloned(), bases.get(1).cloned()]);
        if let Some([Some(base), sliding]) = bases {
            config.set(BASE, base);
            if let Some(sliding) = sliding {
                config.set(SLIDING_BASE, sliding);
            }
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let mtp_layers = config.u32(&[mtp::COUNT])?.unwrap_or(0);
        let blocks = hparams::block_count(config)?.saturating_add(mtp_layers);
        hparams::possible(config, "layers", blocks)?;
        keys.set(key::BLOCK_COUNT, blocks);
        let kinds = config.find(&[LAYER_TYPES]).and_then(|(_, kinds)| kinds.as_array());
        let kind = |layer: u32| kinds.and_then(|kinds| kinds.get(layer as usize));
        let is_sliding: Vec<bool> = (0..blocks)
            .map(|layer| kind(layer).is_some_and(|kind| kind == SLIDING_ATTENTION))
            .collect();
        require_rotary_factors(config, &is_sliding)?;
        let sliding_setting = config.part(SLIDING_SETTING);
        for (key, field) in [
            ("attention.head_count", "num_attention_heads"),
            ("attention.head_count_kv", "num_attention_groups"),
        ] {
            let full = config.require_u32(&[field], "the number of heads")?;
            let sliding = sliding_setting.u32(&[field])?.unwrap_or(full);
            let heads = is_sliding.iter().map(|is| if *is { sliding } else { full });
            let heads: Vec<i32> = heads.map(|heads| heads.try_into().unwrap_or(i32::MAX)).collect();
            keys.set(key, Array::from(&heads[..]));
        }
        let window = config.require_u32(&["sliding_window"], "the size of the sliding window")?;
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&is_sliding[..]));
        keys.set(key::ATTENTION_VALUE_LENGTH, hparams::head_dim(config)?);
        let require = |field: &str| config.require_u32(&[field], "a size of the MoE layers");
        keys.set(key::EXPERT_COUNT, require("moe_num_experts")?);
        keys.set(key::EXPERT_USED_COUNT, require("moe_top_k")?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, require("moe_intermediate_size")?);
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, require("share_expert_dim")?);
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["moe_router_scaling_factor"])?);
        if let Some(norm) = config.bool("norm_expert_weight")? {
            keys.set(key::EXPERT_WEIGHTS_NORM, norm);
        }
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, first_moe_layer(config));
        keys.set(key::MOE_EVERY_N_LAYERS, config.u32(&["moe_every_n_layer"])?.unwrap_or(1));
        keys.set_f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON, config.f32(&["rms_norm_eps"])?);
        for (key, field) in SWIGLU_LIMITS {
            let Some(limits) = config.find(&[field]).and_then(|(_, limits)| limits.as_array())
            else {
                continue;
            };
            let limits = limits.iter().map(|limit| limit.as_f64().unwrap_or(0.0) as f32);
            let mut limits: Vec<f32> = limits.collect();
            limits.resize(blocks as usize, 0.0);
            keys.set(key, Array::from(&limits[..]));
        }
        keys.set_u32(
            key::NEXTN_PREDICT_LAYERS,
            Some(mtp_layers).filter(|&mtp_layers| mtp_layers > 0),
        );
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(bias) = moe::router_bias(ROUTER_BIAS, name) {
            return Ok(Some(bias));
        }
        let mtp_layers = config.u32(&[mtp::COUNT])?.unwrap_or(0);
        let blocks = hparams::block_count(config)?.saturating_add(mtp_layers);
        let is_beyond = block_of(name).is_some_and(|block| block >= blocks);
        Ok(is_beyond.then_some(Mapping::Dropped))
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::norm_plus_one(name)
    }

    // Llama 3 scaling applies to the rotary dimensions of full-attention layers only.
    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        let head_dim =
            hparams::possible(config, "dimensions of a head", hparams::head_dim(config)?)?;
        let rotary_dims = (f64::from(head_dim) * FULL_ROTARY_FACTOR) as u32;
        let Some(mut factors) =
            rope::llama3_factors_of(config, rotary_dims, rope::Precision::Double)?
        else {
            return Ok(Vec::new());
        };
        factors.resize(head_dim as usize / 2, 1.0);
        Ok(vec![(rope::ROPE_FREQS.to_owned(), factors)])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS).unwrap_or(0);
        let all = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let blocks = all.checked_sub(mtp_layers)?;
        let flags = model.metadata().array("step35.attention.sliding_window_pattern")?;
        let is_sliding: Vec<bool> = flags.iter().map(|flag| flag.to_bool() == Some(true)).collect();
        let heads = |key: &str, sliding: bool| {
            let mut layers = (0..all).zip(&is_sliding).filter(|(_, is)| **is == sliding);
            layers.next().and_then(|(layer, _)| hyper.u64_in_layer(key, layer).ok())
        };
        let kind = |is: &bool| if *is { SLIDING_ATTENTION } else { "full_attention" };
        let rotary_factor = |is: &bool| if *is { 1.0 } else { FULL_ROTARY_FACTOR };
        let dense = count(model, key::LEADING_DENSE_BLOCK_COUNT).unwrap_or(0);
        let moe_layers: Vec<String> = (dense..blocks).map(|layer| layer.to_string()).collect();
        let head_counts = |sliding: bool| {
            ["attention.head_count", "attention.head_count_kv"].map(|key| heads(key, sliding))
        };
        let (full, sliding) = (head_counts(false), head_counts(true));
        let base = export::number(model, key::ROPE_FREQ_BASE);
        let sliding_base = export::number(model, key::ROPE_FREQ_BASE_SWA);
        let mut exported = exported
            .first([ROUTER_BIAS])
            .without(&[key::BLOCK_COUNT, key::ATTENTION_HEAD_COUNT, key::ATTENTION_HEAD_COUNT_KV])
            .set("num_hidden_layers", blocks)
            .set(LAYER_TYPES, is_sliding.iter().map(kind).collect::<Vec<_>>())
            .set(ROTARY_FACTORS, is_sliding.iter().map(rotary_factor).collect::<Vec<_>>())
            .set("num_attention_heads", full[0].or(sliding[0]))
            .set("num_attention_groups", full[1].or(sliding[1]))
            .set(MOE_LAYERS, moe_layers.join(","));
        if let [Some(heads), Some(groups)] = sliding {
            let setting = json!({"attention_type": SLIDING_ATTENTION, "num_attention_heads": heads,
            "num_attention_groups": groups});
            exported = exported.set(SLIDING_SETTING, setting);
        }
        if let Some(bases) = base.zip(sliding_base) {
            exported = exported.without(&[key::ROPE_FREQ_BASE]).set(BASE, vec![bases.0, bases.1]);
        }
        for (key, field) in SWIGLU_LIMITS {
            let limits = model.metadata().array(&format!("step35.{key}"));
            let limits = limits.map(|limits| {
                limits.iter().map(|limit| limit.to_f64().map(Value::from)).collect::<Vec<_>>()
            });
            exported = exported.set_some(field, limits);
        }
        Some(exported)
    }
}

/// Fails unless the rotary factors are 1 in sliding-window layers and 0.5 in the others, which runtimes hard-code.
fn require_rotary_factors(config: &Config, is_sliding: &[bool]) -> Result<(), Error> {
    let Some((_, factors)) = config.find(&[ROTARY_FACTORS]) else { return Ok(()) };
    let mut factors = factors.as_array().into_iter().flatten().map(Value::as_f64).zip(is_sliding);
    match factors.find(|(factor, is)| *factor != Some(if **is { 1.0 } else { FULL_ROTARY_FACTOR }))
    {
        None => Ok(()),
        Some((factor, _)) => {
            let factor = factor.map_or("not a number".to_owned(), |factor| factor.to_string());
            Err(hparams::not_computed(config, ROTARY_FACTORS, factor))
        }
    }
}

/// Returns the first MoE layer.
fn first_moe_layer(config: &Config) -> u32 {
    let layers = config.find(&[MOE_LAYERS]).and_then(|(_, layers)| layers.as_str());
    let numbers = layers.into_iter().flat_map(|layers| layers.split(','));
    numbers.filter_map(|layer| layer.trim().parse().ok()).min().unwrap_or(0)
}
