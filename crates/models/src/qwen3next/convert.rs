//! Qwen 3 Next and Qwen 3.5: attention is linear in most layers, by the gated delta rule.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures, filled, renamed};
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, export, hparams, moe, mtp,
};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::qwen2vl;
use crate::schema::key;

pub(crate) const NAMES: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.linear_attn.in_proj_qkv", "blk.{}.attn_qkv"),
    ("model.layers.{}.linear_attn.in_proj_z", "blk.{}.attn_gate"),
    ("model.layers.{}.linear_attn.in_proj_ba", "blk.{}.ssm_ba"),
    ("model.layers.{}.linear_attn.in_proj_a", "blk.{}.ssm_alpha"),
    ("model.layers.{}.linear_attn.in_proj_b", "blk.{}.ssm_beta"),
    ("model.layers.{}.linear_attn.conv1d", "blk.{}.ssm_conv1d"),
    ("model.layers.{}.linear_attn.norm", "blk.{}.ssm_norm"),
    ("model.layers.{}.linear_attn.out_proj", "blk.{}.ssm_out"),
];

const TABLES: &[Table] = &[NAMES, EXPERT_NAMES, mtp::NAMES, LLAMA_LIKE];

/// What is no matrix and no norm.
const PARAMETERS: [(&str, &str); 2] = [
    ("model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a"),
    ("model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias"),
];

/// Queries, keys, values and gates in one matrix, for one head of keys after the other.
const FUSED: &str = "model.layers.{}.linear_attn.in_proj_qkvz.weight";

/// How many layers guess further tokens: counted, as configurations do not say it.
pub(crate) const FURTHER: &str = "mtp_num_hidden_layers";

const FIELDS: &[(&str, &str)] = &[
    (key::SSM_CONV_KERNEL, "linear_conv_kernel_dim"),
    (key::SSM_STATE_SIZE, "linear_key_head_dim"),
    (key::SSM_GROUP_COUNT, "linear_num_key_heads"),
    (key::SSM_TIME_STEP_RANK, "linear_num_value_heads"),
    (key::EXPERT_SHARED_FEED_FORWARD_LENGTH, "shared_expert_intermediate_size"),
    (key::FULL_ATTENTION_INTERVAL, "full_attention_interval"),
];

pub(crate) struct Qwen3next;

/// Description of [`Qwen3next`].
pub(crate) static QWEN3NEXT: Description = Description {
    classes: &["Qwen3NextForCausalLM"],
    architecture: "qwen3next",
    model_type: "qwen3_next",
    pre_tokenizers: &["qwen2"],
    tensor_names: TABLES,
    config_fields: FIELDS,
    required_flags: &[("attention_bias", false), ("norm_topk_prob", true)],
    ..Description::DECODER
};

impl Converter for Qwen3next {
    fn description(&self) -> &'static Description {
        &QWEN3NEXT
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 256);
        config.default("rms_norm_eps", 1e-6);
        config.default("linear_conv_kernel_dim", 4);
        config.default("linear_key_head_dim", 128);
        config.default("linear_value_head_dim", 128);
        config.default("linear_num_key_heads", 16);
        config.default("linear_num_value_heads", 32);
        hparams::default_attention(config)
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        mtp::survey(config, names, FURTHER)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export(model, exported.first([FUSED]))
    }
}

pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    let blocks = hparams::block_count(config)?;
    let further = config.u32(&[FURTHER])?.unwrap_or(0);
    keys.set(key::BLOCK_COUNT, blocks.saturating_add(further));
    keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
    let shared = config.u32(&["shared_expert_intermediate_size"])?;
    keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared);
    keys.set_u32(key::NEXTN_PREDICT_LAYERS, Some(further).filter(|&further| further > 0));
    let heads = Heads::of(config)?;
    keys.set_u32(key::SSM_CONV_KERNEL, config.u32(&["linear_conv_kernel_dim"])?);
    keys.set(key::SSM_STATE_SIZE, heads.key_dim);
    keys.set(key::SSM_GROUP_COUNT, heads.keys);
    keys.set(key::SSM_TIME_STEP_RANK, heads.values);
    keys.set(key::SSM_INNER_SIZE, heads.value_dim.saturating_mul(heads.values));
    if let Some((_, kinds)) = config.find(&["layer_types"]) {
        let kinds = kinds.as_array().into_iter().flatten();
        let mut is_linear: Vec<bool> = kinds.map(|kind| kind == "linear_attention").collect();
        is_linear.resize(is_linear.len() + further as usize, false);
        keys.set(key::ATTENTION_RECURRENT_LAYERS, Array::from(&is_linear[..]));
    }
    let interval = config.u32(&["full_attention_interval"])?.unwrap_or(4);
    keys.set(key::FULL_ATTENTION_INTERVAL, interval);
    let rotated = hparams::rotated_dims(config, hparams::head_dim(config)?, 0.25)?;
    keys.set(key::ROPE_DIMENSION_COUNT, rotated);
    Ok(())
}

/// Heads of linear attention, each of keys for several of values.
struct Heads {
    keys: u32,
    values: u32,
    key_dim: u32,
    value_dim: u32,
}

impl Heads {
    fn of(config: &Config) -> Result<Self, Error> {
        let number = |field: &str| config.require_u32(&[field], "heads of linear attention");
        let (keys, values) = (number("linear_num_key_heads")?, number("linear_num_value_heads")?);
        if keys == 0 || values % keys != 0 {
            return Err(hparams::not_computed(config, "linear_num_value_heads", values));
        }
        let (key_dim, value_dim) =
            (number("linear_key_head_dim")?, number("linear_value_head_dim")?);
        Ok(Self { keys, values, key_dim, value_dim })
    }

    /// Rows of queries, and as many of keys.
    fn key_rows(&self) -> u64 {
        u64::from(self.keys) * u64::from(self.key_dim)
    }

    fn value_rows(&self) -> u64 {
        u64::from(self.values) * u64::from(self.value_dim)
    }

    /// Heads of values of width `len`, behind `start` rows: those of one head of keys after the other
    /// become the first of each, the second of each, and so on. Nothing where there is one for each.
    fn sorted(&self, start: u64, len: u32) -> Option<Step> {
        let (outer, inner) = (self.keys.into(), u64::from(self.values / self.keys));
        (inner > 1).then_some(Step::Exchange { groups: 1, start, outer, inner, len: len.into() })
    }
}

pub(crate) fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let blocks = hparams::block_count(config)?;
    let in_layer = mtp::name_in_layer(name, blocks);
    if in_layer.is_none() && block_of(name).is_some_and(|block| block >= blocks) {
        return Ok(Some(Mapping::Unknown));
    }
    let name = in_layer.as_deref().unwrap_or(name);
    let heads = Heads::of(config)?;
    // Those of Qwen 3 Next stay as they are.
    let sorts = config.class()? != QWEN3NEXT.classes[0];
    for (foreign, ours) in PARAMETERS {
        if let Some(numbers) = captures(foreign, name) {
            let mut steps = Vec::from_iter(heads.sorted(0, 1).filter(|_| sorts));
            if foreign.ends_with("A_log") {
                steps.push(Step::Map(Function::MinusExp));
            }
            return Ok(Some(Mapping::one(filled(ours, &numbers), steps)));
        }
    }
    if let Some(&[block]) = captures(FUSED, name).as_deref() {
        return Ok(Some(fused(&heads, block)));
    }
    let width = || config.require_u32(moe::WIDTH, "the feed-forward width of an expert");
    if let Some(mapping) = moe::mapping(config, name, width)? {
        return Ok(Some(mapping));
    }
    let Some(ours) = renamed(name, TABLES) else { return Ok(Some(Mapping::Unknown)) };
    let mut steps = Vec::new();
    if ours.ends_with("norm.weight") && !ours.ends_with("ssm_norm.weight") {
        steps.push(Step::Map(Function::PlusOne));
    }
    let part = ours.split('.').nth(2).unwrap_or_default();
    if part == "ssm_conv1d" {
        let kernel =
            config.require_u32(&["linear_conv_kernel_dim"], "the width of convolutions")?;
        let channels = 2 * heads.key_rows() + heads.value_rows();
        steps.push(hparams::channels(kernel, channels));
    }
    if sorts {
        steps.extend(match part {
            "attn_qkv" | "ssm_conv1d" => heads.sorted(2 * heads.key_rows(), heads.value_dim),
            "attn_gate" => heads.sorted(0, heads.value_dim),
            "ssm_alpha" | "ssm_beta" => heads.sorted(0, 1),
            _ => None,
        });
        if let Some(Step::Exchange { outer, inner, len, .. }) =
            heads.sorted(0, heads.value_dim).filter(|_| part == "ssm_out")
        {
            steps.push(Step::ExchangeColumns { outer, inner, len });
        }
    }
    Ok(Some(Mapping::one(ours, steps)))
}

/// Queries, keys and values sorted by kind, and gates apart.
fn fused(heads: &Heads, block: u32) -> Mapping {
    let groups = u64::from(heads.keys);
    let (key, value) = (u64::from(heads.key_dim), heads.value_rows() / groups);
    let pick = |start, len| Step::Pick { groups, start, len };
    let made = |name: &str, steps| MappedTensor {
        name: format!("blk.{block}.{name}.weight"),
        steps,
        slot: None,
    };
    let kinds = Step::Regroup { groups, kinds: [key, key, value] };
    Mapping::Made(vec![
        made("attn_qkv", vec![pick(0, 2 * key + value), kinds]),
        made("attn_gate", vec![pick(2 * key + value, value)]),
    ])
}

pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let values = count(model, key::SSM_TIME_STEP_RANK).filter(|&values| values > 0)?;
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let kinds = metadata.array(&format!("{architecture}.attention.recurrent_layers"));
    let kind = |is_linear: gguf::Value| match is_linear.to_bool() {
        Some(true) => "linear_attention",
        _ => "full_attention",
    };
    let experts = moe::one_by_one();
    let exported = exported.patterns(PARAMETERS.map(|(name, _)| name)).patterns(experts);
    let exported = mtp::export(model, exported, TABLES, &experts, FURTHER)?;
    let exported = qwen2vl::convert::sections(model, exported);
    let blocks = exported.config.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    let kinds = kinds.map(|kinds| kinds.iter().take(blocks as usize).map(kind).collect::<Vec<_>>());
    Some(
        exported
            .set("linear_value_head_dim", count(model, key::SSM_INNER_SIZE)? / values)
            .set_some("layer_types", kinds)
            .set_some("partial_rotary_factor", export::rotated_share(model)),
    )
}
