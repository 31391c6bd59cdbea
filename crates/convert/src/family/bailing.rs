//! Ling and Ring (Bailing), the first and the second generation: experts beside those always asked.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use super::exported::{count, has, rotated_share};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, captures, filled};
use super::{Exported, Family, MappedTensor, Mapping, experts, further};

const NAMES: Table = &[
    ("model.word_embeddings", "token_embd"),
    ("model.layers.{}.attention.dense", "blk.{}.attn_output"),
    ("model.layers.{}.attention.query_layernorm", "blk.{}.attn_q_norm"),
    ("model.layers.{}.attention.key_layernorm", "blk.{}.attn_k_norm"),
];

const FIELDS: &[(&str, &str)] = &[
    ("leading_dense_block_count", "first_k_dense_replace"),
    ("expert_shared_count", "num_shared_experts"),
    ("expert_weights_norm", "norm_topk_prob"),
    ("expert_group_count", "n_group"),
    ("expert_group_used_count", "topk_group"),
];

const FUSED: &str = "model.layers.{}.attention.query_key_value.weight";
pub(super) const ROUTER_BIAS: &str = "model.layers.{}.mlp.gate.expert_bias";

pub(super) static BAILING_MOE: Family = Family {
    classes: &["BailingMoeForCausalLM"],
    architecture: "bailingmoe",
    model_type: "bailing_moe",
    pre_tokenizers: &["bailingmoe"],
    names: &[NAMES, experts::BESIDE_SHARED, LLAMA_LIKE],
    fields: FIELDS,
    expects: &[("norm_head", false), ("use_bias", false), ("use_qkv_bias", false)],
    keys: first_keys,
    special: first_special,
    export: |_, exported| {
        Some(exported.first([FUSED]).patterns(experts::one_by_one()).set("norm_head", false))
    },
    ..Family::DEFAULT
};

fn first_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set("rope.dimension_count", hyper::head_dim(config)?);
    keys.set_u32("leading_dense_block_count", config.u32(&["first_k_dense_replace"])?);
    keys.vocab_size(config)?;
    keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
    keys.set("expert_weights_scale", 1.0f32);
    keys.set_u32("expert_shared_count", config.u32(&["num_shared_experts"])?);
    keys.set("expert_weights_norm", config.bool("norm_topk_prob")?.unwrap_or(false));
    Ok(())
}

/// Queries, keys and values are one matrix, one after the other.
fn first_special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let Some(&[block]) = captures(FUSED, name).as_deref() else {
        let width = || config.require_u32(experts::WIDTH, "the width of an expert");
        return experts::mapping(config, name, width);
    };
    let (heads, heads_kv) = (hyper::head_count(config)?, hyper::head_count_kv(config)?);
    let head_dim = u64::from(hyper::head_dim(config)?);
    let (queries, keys) = (u64::from(heads) * head_dim, u64::from(heads_kv) * head_dim);
    let made = |part: &str, start, len, heads: Option<u32>| {
        let mut steps = vec![Step::Pick { groups: 1, start, len }];
        steps.extend(heads.map(|heads| Step::InterleaveHalves { heads: heads.into() }));
        MappedTensor { name: format!("blk.{block}.{part}.weight"), steps, slot: None }
    };
    Ok(Some(Mapping::Made(vec![
        made("attn_q", 0, queries, Some(heads)),
        made("attn_k", queries, keys, Some(heads_kv)),
        made("attn_v", queries + keys, keys, None),
    ])))
}

/// What the second generation has besides: one matrix for queries, keys and values, and layers behind
/// the last that guess further tokens.
const SECOND_NAMES: Table = &[
    ("model.layers.{}.attention.query_key_value", "blk.{}.attn_qkv"),
    ("model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"),
    ("model.layers.{}.eh_proj", "blk.{}.nextn.eh_proj"),
    ("model.layers.{}.enorm", "blk.{}.nextn.enorm"),
    ("model.layers.{}.hnorm", "blk.{}.nextn.hnorm"),
];

pub(super) static BAILING_MOE2: Family = Family {
    classes: &["BailingMoeV2ForCausalLM"],
    architecture: "bailingmoe2",
    model_type: "bailing_moe_v2",
    pre_tokenizers: &["bailingmoe2"],
    names: &[NAMES, SECOND_NAMES, experts::BESIDE_SHARED, LLAMA_LIKE],
    fields: FIELDS,
    expects: &[("use_bias", false), ("use_qkv_bias", false)],
    keys: second_keys,
    special: second_special,
    export: second_export,
    ..Family::DEFAULT
};

fn second_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let further = config.u32(&[further::COUNT])?;
    keys.stated(config)?;
    keys.set("block_count", hyper::block_count(config)?.saturating_add(further.unwrap_or(0)));
    let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 0.5)?;
    keys.set("rope.dimension_count", rotated);
    keys.set_u32("leading_dense_block_count", config.u32(&["first_k_dense_replace"])?);
    keys.vocab_size(config)?;
    let width = config.require_u32(experts::WIDTH, "the width of an expert")?;
    let shared = config.u32(&["num_shared_experts"])?.unwrap_or(0);
    let stated = config.u32(&["moe_shared_expert_intermediate_size"])?;
    keys.set("expert_feed_forward_length", width);
    keys.set("expert_shared_feed_forward_length", stated.unwrap_or(width.saturating_mul(shared)));
    keys.set_f32("expert_weights_scale", config.f32(&["routed_scaling_factor"])?);
    keys.set("expert_shared_count", shared);
    keys.set("expert_weights_norm", config.bool("norm_topk_prob")?.unwrap_or(false));
    keys.set_u32("nextn_predict_layers", further);
    Ok(())
}

fn second_special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(bias) = experts::router_bias(ROUTER_BIAS, name) {
        return Ok(Some(bias));
    }
    let width = || config.require_u32(experts::WIDTH, "the width of an expert");
    experts::mapping(config, name, width)
}

fn second_export(model: &Model, exported: Exported) -> Option<Exported> {
    let further = count(model, "nextn_predict_layers");
    let blocks = count(model, "block_count")?.checked_sub(further.unwrap_or(0))?;
    let function = (count(model, "expert_gating_func") == Some(2)).then_some("sigmoid");
    let exported = exported
        .patterns([ROUTER_BIAS])
        .patterns(experts::one_by_one())
        .fields(&[
            ("expert_weights_scale", "routed_scaling_factor"),
            ("expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
        ])
        .without(&["block_count"])
        .set("num_hidden_layers", blocks)
        .set("use_qk_norm", has(model, "blk.0.attn_q_norm.weight"))
        .set_some(further::COUNT, further)
        .set_some("score_function", function)
        .set_some("partial_rotary_factor", rotated_share(model));
    Some(exported)
}

/// Set by the biases of routers: by how much each is more than nothing on average.
const MEANS: &str = "expert_bias_means";

/// Sarvam: the second generation, where all of a head rotates, and biases of routers are nothing on average.
pub(super) static SARVAM: Family = Family {
    classes: &["SarvamMoEForCausalLM", "modeling_sarvam_moe.SarvamMoEForCausalLM"],
    model_type: "sarvam_moe",
    pre_tokenizers: &["sarvam-moe"],
    values: |config, values| {
        let blocks = hyper::possible(config, "layers", hyper::block_count(config)?)?;
        let mut means = Vec::new();
        for block in 0..blocks {
            let bias = values.find(&filled(ROUTER_BIAS, &[block]))?.unwrap_or_default();
            let sum: f64 = bias.iter().copied().map(f64::from).sum();
            means.push((sum / bias.len().max(1) as f64) as f32);
        }
        config.set(MEANS, means);
        Ok(())
    },
    keys: |config, keys| {
        second_keys(config, keys)?;
        keys.set("rope.dimension_count", hyper::head_dim(config)?);
        Ok(())
    },
    special: |config, name| {
        let mapping = second_special(config, name)?;
        let means = config.f32s(MEANS)?.unwrap_or_default();
        let Some(&[block]) = captures(ROUTER_BIAS, name).as_deref() else { return Ok(mapping) };
        let Some(mean) = means.get(block as usize) else { return Ok(mapping) };
        let steps = [Step::Map(Function::Plus(-mean))];
        Ok(Some(Mapping::one(format!("blk.{block}.exp_probs_b.bias"), steps)))
    },
    // They come back as models of the family above.
    export: |_, _| None,
    ..BAILING_MOE2
};
