//! Conversion of `BailingMoeV3ForCausalLM`. `attention.head_count_kv` is an array: 1 in MLA layers,
//! 0 in Kimi Delta Attention layers. The gate `g_proj` becomes `attn_gate` or `ssm_g_a`
//! accordingly, and `kv_b_proj` is split as in `deepseek2`.

use gguf::{Array, Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures};
use crate::convert::{Converter, Description, Exported, Mapping, hparams, moe, mtp};
use crate::deepseek2::convert::split_kv_b;
use crate::schema::{HyperParameters, key};
use crate::{bailingmoe2, kimi_linear};

const NAMES: Table = &[
    ("model.word_embeddings", "token_embd"),
    ("model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"),
    ("model.layers.{}.attention.q_proj", "blk.{}.attn_q"),
    ("model.layers.{}.attention.k_proj", "blk.{}.attn_k"),
    ("model.layers.{}.attention.v_proj", "blk.{}.attn_v"),
    ("model.layers.{}.attention.o_proj", "blk.{}.attn_output"),
    ("model.layers.{}.attention.dense", "blk.{}.attn_output"),
    ("model.layers.{}.attention.q_conv1d", "blk.{}.ssm_conv1d_q"),
    ("model.layers.{}.attention.k_conv1d", "blk.{}.ssm_conv1d_k"),
    ("model.layers.{}.attention.v_conv1d", "blk.{}.ssm_conv1d_v"),
    ("model.layers.{}.attention.b_proj", "blk.{}.ssm_beta"),
    ("model.layers.{}.attention.f_proj", "blk.{}.ssm_f_a"),
    ("model.layers.{}.attention.o_norm", "blk.{}.ssm_norm"),
    ("model.layers.{}.attention.q_a_proj", "blk.{}.attn_q_a"),
    ("model.layers.{}.attention.q_a_layernorm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.attention.q_b_proj", "blk.{}.attn_q_b"),
    ("model.layers.{}.attention.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("model.layers.{}.attention.kv_a_layernorm", "blk.{}.attn_kv_a_norm"),
];

const GATE_PROJ: &str = "model.layers.{}.attention.g_proj.weight";

const A_LOG: &str = "model.layers.{}.attention.A_log";

const DT_BIAS: &str = "model.layers.{}.attention.dt_bias";

const KV_B_PROJ: &str = "model.layers.{}.attention.kv_b_proj.weight";

/// Number of layers of a group, the last of which has MLA.
const GROUP_SIZE: &str = "layer_group_size";

const GRANULARITY: &str = "gated_attention_proj_granularity_type";

const HEAD_WISE: &str = "head_wise";

const MROPE_SECTION: &str = "mrope_section";

const VISION_CLASS: &str = "BailingMoeV3VLForConditionalGeneration";

/// Clamps of gated activations: keys and fields.
const SWIGLU_LIMITS: [(&str, &str); 2] = [
    ("swiglu_clamp_exp", "expert_swiglu_limit_list"),
    ("swiglu_clamp_shexp", "share_expert_swiglu_limit_list"),
];

pub(crate) struct BailingMoe3;

/// Description of [`BailingMoe3`].
pub(crate) static BAILING_MOE3: Description = Description {
    classes: &["BailingMoeV3ForCausalLM", VISION_CLASS],
    architecture: "bailingmoe3",
    model_type: "bailing_moe_v3",
    pre_tokenizers: &["bailingmoe2"],
    tensor_names: &[NAMES, mtp::NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: &[
        (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
        (key::EXPERT_SHARED_COUNT, "num_shared_experts"),
        (key::EXPERT_SHARED_FEED_FORWARD_LENGTH, "moe_shared_expert_intermediate_size"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::EXPERT_WEIGHTS_NORM, "norm_topk_prob"),
        (key::EXPERT_GROUP_COUNT, "n_group"),
        (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
        (key::SSM_CONV_KERNEL, "short_conv_kernel_size"),
        (key::KDA_HEAD_DIM, "head_dim"),
        (key::KDA_SAFE_GATE, "kda_safe_gate"),
        (key::KDA_GATE_LOWER_BOUND, "kda_lower_bound"),
        (key::ATTENTION_KV_LORA_RANK, "kv_lora_rank"),
        (key::ATTENTION_VALUE_LENGTH_MLA, "v_head_dim"),
        (key::ROPE_DIMENSION_COUNT, "qk_rope_head_dim"),
    ],
    required_flags: &[("no_kda_lora", true), ("kda_safe_gate", true)],
    ..Description::DECODER
};

impl Converter for BailingMoe3 {
    fn description(&self) -> &'static Description {
        &BAILING_MOE3
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        match config.find(&[GRANULARITY]) {
            Some((_, stated)) if stated == HEAD_WISE => {}
            Some((_, stated)) => return Err(hparams::not_computed(config, GRANULARITY, stated)),
            None => {
                return Err(config.missing(GRANULARITY, "the granularity of the attention gate"));
            }
        }
        let size =
            |field: &str| config.require_u32(&[field], "a size of attention or of the experts");
        let mut with_one_kv_head = config.clone();
        with_one_kv_head.set("num_key_value_heads", 1);
        keys.stated(&with_one_kv_head)?;
        let mtp_layers = config.u32(&[mtp::COUNT])?.filter(|&count| count > 0);
        let blocks = hparams::block_count(config)?.saturating_add(mtp_layers.unwrap_or(0));
        let blocks = hparams::possible(config, "layers", blocks)?;
        keys.set(key::BLOCK_COUNT, blocks);
        let heads = (0..blocks).map(|layer| is_mla(config, layer).map(i32::from));
        let heads = heads.collect::<Result<Vec<_>, _>>()?;
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
        keys.vocab_size(config)?;
        keys.set(key::SSM_CONV_KERNEL, size("short_conv_kernel_size")?);
        keys.set(key::KDA_HEAD_DIM, size("head_dim")?);
        keys.set(key::KDA_SAFE_GATE, true);
        let bound = config.require_f32(&["kda_lower_bound"], "the lower bound of the KDA decay")?;
        keys.set(key::KDA_GATE_LOWER_BOUND, bound);
        let (rank, rope_dims) = (size("kv_lora_rank")?, size("qk_rope_head_dim")?);
        keys.set_u32(key::ATTENTION_Q_LORA_RANK, config.u32(&["q_lora_rank"])?);
        keys.set(key::ATTENTION_KV_LORA_RANK, rank);
        keys.set(key::ROPE_DIMENSION_COUNT, rope_dims);
        keys.set(key::ATTENTION_KEY_LENGTH, rank.saturating_add(rope_dims));
        keys.set(
            key::ATTENTION_KEY_LENGTH_MLA,
            size("qk_nope_head_dim")?.saturating_add(rope_dims),
        );
        keys.set(key::ATTENTION_VALUE_LENGTH_MLA, size("v_head_dim")?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, size("moe_intermediate_size")?);
        let width = size("moe_shared_expert_intermediate_size")?;
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, width);
        keys.set(key::EXPERT_SHARED_COUNT, config.u32(&["num_shared_experts"])?.unwrap_or(1));
        let dense = config.u32(&["first_k_dense_replace"])?;
        let dense = dense.ok_or_else(|| {
            config.missing("first_k_dense_replace", "the number of leading dense layers")
        })?;
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense);
        let scale =
            config.require_f32(&["routed_scaling_factor"], "the scale of the expert weights")?;
        keys.set(key::EXPERT_WEIGHTS_SCALE, scale);
        keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("norm_topk_prob")?.unwrap_or(false));
        for (key, field) in SWIGLU_LIMITS {
            let Some((_, limits)) = config.find(&[field]) else { continue };
            let limits = limits.as_array().into_iter().flatten();
            let limits = limits.map(|limit| limit.as_f64().unwrap_or(0.0) as f32);
            let mut limits: Vec<f32> = limits.collect();
            limits.resize(blocks as usize, 0.0);
            keys.set(key, Array::from(&limits[..]));
        }
        keys.set_u32(key::NEXTN_PREDICT_LAYERS, mtp_layers);
        if config.class()? == VISION_CLASS {
            let sections = config.u32s(MROPE_SECTION)?;
            let sections =
                sections.ok_or_else(|| config.missing(MROPE_SECTION, "the M-RoPE sections"))?;
            let sum: u32 = sections.iter().take(3).sum();
            if sum.saturating_mul(2) != rope_dims {
                return Err(hparams::not_computed(config, MROPE_SECTION, Value::from(sections)));
            }
            let mut four = [0; 4];
            four.iter_mut().zip(sections.iter().take(3)).for_each(|(to, from)| *to = *from as i32);
            keys.set(key::ROPE_DIMENSION_SECTIONS, Array::from(&four[..]));
        }
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name.starts_with("linear_proj")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let mtp_layers = config.u32(&[mtp::COUNT])?.unwrap_or(0);
        let blocks = hparams::block_count(config)?.saturating_add(mtp_layers);
        if block_of(name).is_some_and(|block| block >= blocks) {
            return Ok(Some(Mapping::Unknown));
        }
        let block_in = |pattern| match captures(pattern, name).as_deref() {
            Some(&[block]) => Some(block),
            _ => None,
        };
        if let Some(block) = block_in(KV_B_PROJ) {
            let mut multi_head = config.clone();
            multi_head.set("num_key_value_heads", hparams::head_count(config)?);
            return split_kv_b(&multi_head, block).map(Some);
        }
        if let Some(block) = block_in(GATE_PROJ) {
            let part = if is_mla(config, block)? { "attn_gate" } else { "ssm_g_a" };
            return Ok(Some(Mapping::one(format!("blk.{block}.{part}.weight"), [])));
        }
        if let Some(block) = block_in(A_LOG) {
            let heads = u64::from(hparams::head_count(config)?);
            let (from, to) = (shape(&[heads]), shape(&[1, heads]));
            let steps = [Step::Map(Function::Exp), Step::Reshape { from, to }];
            return Ok(Some(Mapping::one(format!("blk.{block}.ssm_a"), steps)));
        }
        if let Some(block) = block_in(DT_BIAS) {
            return Ok(Some(Mapping::one(format!("blk.{block}.ssm_dt.bias"), [])));
        }
        moe::routed(config, name, bailingmoe2::convert::ROUTER_BIAS)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        kimi_linear::convert::conv1d_steps(config, name, config.u32(&["head_dim"])?.unwrap_or(0))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS);
        let all = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let blocks = all.checked_sub(mtp_layers.unwrap_or(0))?;
        let is_mla = |layer: u64| {
            hyper.u64_in_layer(key::ATTENTION_HEAD_COUNT_KV, layer).is_ok_and(|heads| heads > 0)
        };
        let period = (0..all).find(|layer| is_mla(*layer)).map_or(1, |first| first + 1);
        let rope_dims = count(model, key::ROPE_DIMENSION_COUNT)?;
        let mut exported = exported
            .patterns([A_LOG, DT_BIAS, KV_B_PROJ, GATE_PROJ, bailingmoe2::convert::ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .without(&[key::BLOCK_COUNT, key::ATTENTION_HEAD_COUNT_KV, key::ATTENTION_KEY_LENGTH])
            .set("num_hidden_layers", blocks)
            .set("num_key_value_heads", count(model, key::ATTENTION_HEAD_COUNT)?)
            .set(
                "qk_nope_head_dim",
                count(model, key::ATTENTION_KEY_LENGTH_MLA)?.checked_sub(rope_dims)?,
            )
            .set("q_lora_rank", count(model, key::ATTENTION_Q_LORA_RANK))
            .set("no_kda_lora", true)
            .set(GRANULARITY, HEAD_WISE)
            .set(GROUP_SIZE, period)
            .set_some(mtp::COUNT, mtp_layers);
        if count(model, key::EXPERT_GATING_FUNC) == Some(2) {
            exported = exported.set("score_function", "sigmoid");
        }
        for (key, field) in SWIGLU_LIMITS {
            let limits = model.metadata().array(&format!("bailingmoe3.{key}"));
            let limits = limits.map(|limits| {
                limits.iter().map(|limit| limit.to_f64().map(Value::from)).collect::<Vec<_>>()
            });
            exported = exported.set_some(field, limits);
        }
        if let Some(sections) = model.metadata().array("bailingmoe3.rope.dimension_sections") {
            let sections: Vec<_> = sections.iter().take(3).map(|dims| dims.to_i64()).collect();
            exported =
                exported.class(VISION_CLASS, "bailing_moe_v3_vl").set(MROPE_SECTION, sections);
        }
        Some(exported)
    }
}

/// Returns whether a layer has MLA.
fn is_mla(config: &Config, layer: u32) -> Result<bool, Error> {
    let blocks = hparams::block_count(config)?;
    let period = config.require_u32(&[GROUP_SIZE], "the number of layers of a group")?;
    let in_groups = blocks / period * period;
    Ok(layer >= in_groups || (layer + 1).is_multiple_of(period))
}

fn shape(dims: &[u64]) -> Shape {
    Shape::new(dims).unwrap_or_else(|| unreachable!("no more than four dimensions"))
}
