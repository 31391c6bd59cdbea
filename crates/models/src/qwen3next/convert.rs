//! Conversion of Qwen3-Next and, as base, of Qwen3.5. Qwen3-Next fuses queries, keys, values and
//! gates head by head; Qwen3.5 stores the value heads of one key head side by side, while llama.cpp
//! expects them interleaved. MTP layers become the last layers.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures, filled, renamed};
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, defaults, export, hparams, moe, mtp,
    rope, steps,
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

/// Parameters whose names have no `.weight`.
const PARAMETERS: [(&str, &str); 2] = [
    ("model.layers.{}.linear_attn.A_log", "blk.{}.ssm_a"),
    ("model.layers.{}.linear_attn.dt_bias", "blk.{}.ssm_dt.bias"),
];

/// Queries, keys, values and gates in one matrix, grouped by key head.
const FUSED_QKVZ: &str = "model.layers.{}.linear_attn.in_proj_qkvz.weight";

/// Number of MTP layers, counted in the checkpoint, as config.json has no such field.
pub(crate) const MTP_COUNT: &str = "mtp_num_hidden_layers";

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
        defaults::attention(config)
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        mtp::survey(config, names, MTP_COUNT)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let blocks = hparams::block_count(config)?;
        let mtp_layers = config.u32(&[MTP_COUNT])?.unwrap_or(0);
        keys.set(key::BLOCK_COUNT, blocks.saturating_add(mtp_layers));
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        let shared = config.u32(&["shared_expert_intermediate_size"])?;
        keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared);
        keys.set_u32(
            key::NEXTN_PREDICT_LAYERS,
            Some(mtp_layers).filter(|&mtp_layers| mtp_layers > 0),
        );
        let heads = Heads::of(config)?;
        keys.set_u32(key::SSM_CONV_KERNEL, config.u32(&["linear_conv_kernel_dim"])?);
        keys.set(key::SSM_STATE_SIZE, heads.key_dim);
        keys.set(key::SSM_GROUP_COUNT, heads.key_heads);
        keys.set(key::SSM_TIME_STEP_RANK, heads.value_heads);
        keys.set(key::SSM_INNER_SIZE, heads.value_dim.saturating_mul(heads.value_heads));
        if let Some((_, kinds)) = config.find(&["layer_types"]) {
            let kinds = kinds.as_array().into_iter().flatten();
            let mut is_linear: Vec<bool> = kinds.map(|kind| kind == "linear_attention").collect();
            is_linear.resize(is_linear.len() + mtp_layers as usize, false);
            keys.set(key::ATTENTION_RECURRENT_LAYERS, Array::from(&is_linear[..]));
        }
        let interval = config.u32(&["full_attention_interval"])?.unwrap_or(4);
        keys.set(key::FULL_ATTENTION_INTERVAL, interval);
        let rotary_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 0.25)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let blocks = hparams::block_count(config)?;
        let in_layer = mtp::name_in_layer(name, blocks);
        if in_layer.is_none() && block_of(name).is_some_and(|block| block >= blocks) {
            return Ok(Some(Mapping::Unknown));
        }
        let name = in_layer.as_deref().unwrap_or(name);
        let heads = Heads::of(config)?;
        // Value heads of Qwen3-Next keep their order.
        let reorders = config.class()? != QWEN3NEXT.classes[0];
        for (checkpoint_name, gguf_name) in PARAMETERS {
            if let Some(numbers) = captures(checkpoint_name, name) {
                let mut steps =
                    Vec::from_iter(heads.interleave_value_heads(0, 1).filter(|_| reorders));
                if checkpoint_name.ends_with("A_log") {
                    steps.push(Step::Map(Function::MinusExp));
                }
                return Ok(Some(Mapping::one(filled(gguf_name, &numbers), steps)));
            }
        }
        if let Some(&[block]) = captures(FUSED_QKVZ, name).as_deref() {
            return Ok(Some(split_fused_qkvz(&heads, block)));
        }
        if let Some(mapping) = moe::mapping(config, name, || moe::width(config))? {
            return Ok(Some(mapping));
        }
        let Some(gguf_name) = renamed(name, TABLES) else { return Ok(Some(Mapping::Unknown)) };
        let mut steps = Vec::new();
        if gguf_name.ends_with("norm.weight") && !gguf_name.ends_with("ssm_norm.weight") {
            steps.push(Step::Map(Function::PlusOne));
        }
        let part = gguf_name.split('.').nth(2).unwrap_or_default();
        if part == "ssm_conv1d" {
            let kernel = config
                .require_u32(&["linear_conv_kernel_dim"], "the kernel size of convolutions")?;
            let channels = 2 * heads.key_rows() + heads.value_rows();
            steps.push(steps::channels(kernel, channels));
        }
        if reorders {
            steps.extend(match part {
                "attn_qkv" | "ssm_conv1d" => {
                    heads.interleave_value_heads(2 * heads.key_rows(), heads.value_dim)
                }
                "attn_gate" => heads.interleave_value_heads(0, heads.value_dim),
                "ssm_alpha" | "ssm_beta" => heads.interleave_value_heads(0, 1),
                _ => None,
            });
            if let Some(Step::Exchange { outer, inner, len, .. }) =
                heads.interleave_value_heads(0, heads.value_dim).filter(|_| part == "ssm_out")
            {
                steps.push(Step::ExchangeColumns { outer, inner, len });
            }
        }
        Ok(Some(Mapping::one(gguf_name, steps)))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_hybrid(model, exported.first([FUSED_QKVZ]))
    }
}

/// Heads of linear attention. Several value heads share a key head.
struct Heads {
    key_heads: u32,
    value_heads: u32,
    key_dim: u32,
    value_dim: u32,
}

impl Heads {
    fn of(config: &Config) -> Result<Self, Error> {
        let number = |field: &str| config.require_u32(&[field], "a size of linear attention");
        let (key_heads, value_heads) =
            (number("linear_num_key_heads")?, number("linear_num_value_heads")?);
        if key_heads == 0 || value_heads % key_heads != 0 {
            return Err(hparams::not_computed(config, "linear_num_value_heads", value_heads));
        }
        let (key_dim, value_dim) =
            (number("linear_key_head_dim")?, number("linear_value_head_dim")?);
        Ok(Self { key_heads, value_heads, key_dim, value_dim })
    }

    /// Returns the number of rows of all queries, which is that of all keys.
    fn key_rows(&self) -> u64 {
        u64::from(self.key_heads) * u64::from(self.key_dim)
    }

    fn value_rows(&self) -> u64 {
        u64::from(self.value_heads) * u64::from(self.value_dim)
    }

    /// Returns the step that reorders value heads of `len` rows after the first `start` rows: from being grouped by key
    /// head to the first value head of each key head, then the second, and so on. `None` if the order is the same.
    fn interleave_value_heads(&self, start: u64, len: u32) -> Option<Step> {
        let (outer, inner) = (self.key_heads.into(), u64::from(self.value_heads / self.key_heads));
        (inner > 1).then_some(Step::Exchange { groups: 1, start, outer, inner, len: len.into() })
    }
}

/// Maps the fused matrix to `attn_qkv`, regrouped by kind, and `attn_gate`.
fn split_fused_qkvz(heads: &Heads, block: u32) -> Mapping {
    let groups = u64::from(heads.key_heads);
    let (key, value) = (u64::from(heads.key_dim), heads.value_rows() / groups);
    let pick = |start, len| Step::Pick { groups, start, len };
    let tensor = |name: &str, steps| MappedTensor {
        name: format!("blk.{block}.{name}.weight"),
        steps,
        slot: None,
    };
    let kinds = Step::Regroup { groups, kinds: [key, key, value] };
    Mapping::Tensors(vec![
        tensor("attn_qkv", vec![pick(0, 2 * key + value), kinds]),
        tensor("attn_gate", vec![pick(2 * key + value, value)]),
    ])
}

/// Completes the description of an export with what Qwen3-Next and Qwen3.5 have in common.
pub(crate) fn export_hybrid(model: &Model, exported: Exported) -> Option<Exported> {
    let value_heads = count(model, key::SSM_TIME_STEP_RANK).filter(|&heads| heads > 0)?;
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let kinds = metadata.array(&format!("{architecture}.attention.recurrent_layers"));
    let kind = |is_linear: gguf::Value| match is_linear.to_bool() {
        Some(true) => "linear_attention",
        _ => "full_attention",
    };
    let experts = moe::one_by_one();
    let exported = exported.patterns(PARAMETERS.map(|(name, _)| name)).patterns(experts);
    let exported = mtp::export(model, exported, TABLES, &experts, MTP_COUNT)?;
    let exported = qwen2vl::convert::export_mrope_sections(model, exported);
    let blocks = exported.config.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    let kinds = kinds.map(|kinds| kinds.iter().take(blocks as usize).map(kind).collect::<Vec<_>>());
    Some(
        exported
            .set("linear_value_head_dim", count(model, key::SSM_INNER_SIZE)? / value_heads)
            .set_some("layer_types", kinds)
            .set_some("partial_rotary_factor", export::rotated_share(model)),
    )
}
