//! Conversion of `Glm5NextForConditionalGeneration`: MLA without RoPE and Kimi Delta Attention by
//! `layer_types`, the pooling indexer, and hyper-connections. `attention.head_count_kv` is an
//! array: 1 in MLA layers, 0 in KDA layers.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::{count, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, block_of, captures};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, hparams, moe, mtp,
};
use crate::deepseek2::convert::{KV_B_PROJ, MLA_NAMES, split_kv_b};
use crate::deepseek4::convert::HYPER_CONNECTIONS;
use crate::deepseek32::convert::INDEXER;
use crate::glm_dsa::convert::INDEXER_TYPES;
use crate::kimi_linear::convert::{A_LOG, DT_BIAS};
use crate::schema::key;
use crate::{deepseek32, hy_v4, kimi_linear};

/// Checkpoint names without a suffix, and GGUF names.
const PARAMETERS: [(&str, &str); 2] = [
    (
        "model.layers.{}.self_attn.indexer.index_kpool_compress_gate",
        "blk.{}.indexer_compressor_gate.weight",
    ),
    (
        "model.layers.{}.self_attn.indexer.index_kpool_compress_ape",
        "blk.{}.indexer_compressor_ape.weight",
    ),
];

const LAYER_TYPES: &str = "layer_types";

const LINEAR_ATTENTION: &str = "linear_attention";

const LINEAR_ATTN_CONFIG: &str = "linear_attn_config";

const SWIGLU_LIMIT: &str = "swiglu_limit";

const SELECT_TAIL: &str = "index_kpool_always_select_tail";

/// Epsilon of the layer norms of the indexer, for which config.json has no field.
const INDEXER_NORM_EPSILON: f32 = 1e-6;

const HC_MULT: &str = "hc_mult";

pub(crate) struct Glm5Next;

/// Description of [`Glm5Next`].
pub(crate) static GLM5_NEXT: Description = Description {
    classes: &["Glm5NextForConditionalGeneration"],
    architecture: "glm5-next",
    model_type: "glm5_next",
    vocabulary: VocabularyKind::Glm4Moe,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    tensor_names: &[
        moe::BESIDE_SHARED,
        kimi_linear::convert::NAMES,
        MLA_NAMES,
        INDEXER,
        mtp::NAMES,
        LLAMA_LIKE,
    ],
    config_fields: &[
        (key::EXPERT_COUNT, "n_routed_experts"),
        (key::EXPERT_SHARED_COUNT, "n_shared_experts"),
        (key::EXPERT_GROUP_COUNT, "n_group"),
        (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::EXPERT_WEIGHTS_NORM, "norm_topk_prob"),
        (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
        (key::ATTENTION_Q_LORA_RANK, "q_lora_rank"),
        (key::ATTENTION_KV_LORA_RANK, "kv_lora_rank"),
        (key::ATTENTION_KEY_LENGTH_MLA, "qk_nope_head_dim"),
        (key::ATTENTION_VALUE_LENGTH_MLA, "v_head_dim"),
        (key::ATTENTION_INDEXER_HEAD_COUNT, "index_n_heads"),
        (key::ATTENTION_INDEXER_KEY_LENGTH, "index_head_dim"),
        (key::ATTENTION_INDEXER_TOP_K, "index_topk"),
        (key::ATTENTION_INDEXER_KPOOL, "index_kpool"),
        (key::ATTENTION_INDEXER_KPOOL_SELECT_TAIL, SELECT_TAIL),
        (key::HYPER_CONNECTION_COUNT, HC_MULT),
        (key::HYPER_CONNECTION_SINKHORN_ITERATIONS, "hc_sinkhorn_iters"),
        (key::HYPER_CONNECTION_EPSILON, "hc_eps"),
    ],
    required_flags: &[("mla_use_nope", true), ("mhc", true)],
    ..Description::DECODER
};

impl Converter for Glm5Next {
    fn description(&self) -> &'static Description {
        &GLM5_NEXT
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let number =
            |field: &str| config.require_u32(&[field], "a size of attention or of the experts");
        if let Some(rope_dims) =
            config.u32(&["qk_rope_head_dim"])?.filter(|&rope_dims| rope_dims > 0)
        {
            return Err(hparams::not_computed(config, "qk_rope_head_dim", rope_dims));
        }
        let mut without_head_dim = config.clone();
        without_head_dim.set("head_dim", Value::Null);
        keys.stated(&without_head_dim)?;
        let mtp_layers = mtp_layers(config)?;
        let blocks = hparams::block_count(config)?.saturating_add(mtp_layers);
        let blocks = hparams::possible(config, "layers", blocks)?;
        keys.set(key::BLOCK_COUNT, blocks);
        let types = config.find(&[LAYER_TYPES]).and_then(|(_, types)| types.as_array());
        let types = types.ok_or_else(|| config.missing(LAYER_TYPES, "the type of each layer"))?;
        let mut heads: Vec<i32> =
            types.iter().map(|layer_type| i32::from(*layer_type != LINEAR_ATTENTION)).collect();
        heads.resize(blocks as usize, 1);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
        keys.vocab_size(config)?;
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, INDEXER_NORM_EPSILON);
        keys.set_u32(
            key::NEXTN_PREDICT_LAYERS,
            Some(mtp_layers).filter(|&mtp_layers| mtp_layers > 0),
        );
        let linear = config.part(LINEAR_ATTN_CONFIG);
        let linear_size = |field: &str| linear.require_u32(&[field], "a size of linear attention");
        keys.set(key::SSM_CONV_KERNEL, linear_size("short_conv_kernel_size")?);
        keys.set(key::KDA_HEAD_DIM, linear_size("head_dim")?);
        keys.set_f32(key::KDA_GATE_LOWER_BOUND, linear.f32(&["gate_lower_bound"])?);
        let rank = number("kv_lora_rank")?;
        keys.set(key::ATTENTION_Q_LORA_RANK, number("q_lora_rank")?);
        keys.set(key::ATTENTION_KV_LORA_RANK, rank);
        keys.set(key::ROPE_DIMENSION_COUNT, 0u32);
        keys.set(key::ATTENTION_KEY_LENGTH, rank);
        keys.set(key::ATTENTION_VALUE_LENGTH, rank);
        keys.set(key::ATTENTION_KEY_LENGTH_MLA, number("qk_nope_head_dim")?);
        keys.set(key::ATTENTION_VALUE_LENGTH_MLA, number("v_head_dim")?);
        deepseek32::convert::indexer_keys(config, keys)?;
        keys.set(key::ATTENTION_INDEXER_KPOOL, number("index_kpool")?);
        keys.set(
            key::ATTENTION_INDEXER_KPOOL_SELECT_TAIL,
            config.bool(SELECT_TAIL)?.unwrap_or(true),
        );
        if let Some((_, types)) = config.find(&[INDEXER_TYPES]) {
            let types = types.as_array().into_iter().flatten();
            let is_full: Vec<bool> = types.map(|layer_type| layer_type == "full").collect();
            keys.set(key::ATTENTION_INDEXER_TYPES, Array::from(&is_full[..]));
        }
        keys.set(key::HYPER_CONNECTION_COUNT, number(HC_MULT)?);
        keys.set(key::HYPER_CONNECTION_SINKHORN_ITERATIONS, number("hc_sinkhorn_iters")?);
        let epsilon = config.require_f32(&["hc_eps"], "the epsilon of the hyper-connections")?;
        keys.set(key::HYPER_CONNECTION_EPSILON, epsilon);
        let dense = config.u32(&["first_k_dense_replace"])?;
        let dense = dense.ok_or_else(|| {
            config.missing("first_k_dense_replace", "the number of leading dense layers")
        })?;
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, number("moe_intermediate_size")?);
        keys.set(key::EXPERT_SHARED_COUNT, number("n_shared_experts")?);
        let scale =
            config.require_f32(&["routed_scaling_factor"], "the scale of the expert weights")?;
        keys.set(key::EXPERT_WEIGHTS_SCALE, scale);
        keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("norm_topk_prob")?.unwrap_or(false));
        if let Some(limit) = config.f32(&[SWIGLU_LIMIT])? {
            let limits = vec![limit; blocks as usize];
            keys.set(key::SWIGLU_CLAMP_EXP, Array::from(&limits[..]));
            keys.set(key::SWIGLU_CLAMP_SHEXP, Array::from(&limits[..]));
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let blocks = hparams::block_count(config)?.saturating_add(mtp_layers(config)?);
        if block_of(name).is_some_and(|block| block >= blocks) {
            return Ok(Some(Mapping::Unknown));
        }
        if name == "lm_head.weight" && config.bool("tie_word_embeddings")? == Some(true) {
            return Ok(Some(Mapping::Dropped));
        }
        let parameter = |names: &[_]| hy_v4::convert::map_parameter(names, name);
        if let Some(mapping) = parameter(&PARAMETERS).or_else(|| parameter(&HYPER_CONNECTIONS)) {
            return Ok(Some(mapping));
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
        if let Some(block) = block_in(A_LOG) {
            return kimi_linear::convert::map_a_log(config, block).map(Some);
        }
        if let Some(block) = block_in(DT_BIAS) {
            return Ok(Some(Mapping::one(format!("blk.{block}.ssm_dt.bias"), [])));
        }
        moe::routed(config, name, moe::ROUTER_BIAS)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let width = config.part(LINEAR_ATTN_CONFIG).u32(&["head_dim"])?.unwrap_or(0);
        kimi_linear::convert::conv1d_steps(config, name, width)
    }

    fn keeps_f32(&self, _: &Config, name: &str) -> bool {
        name.contains("indexer_compressor_")
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let metadata = model.metadata();
        let list = |key: &str| metadata.array(&format!("glm5-next.{key}"));
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS);
        let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers.unwrap_or(0))?;
        let heads = list("attention.head_count_kv")?;
        let layer_type = |heads: gguf::Value| match heads.to_u64() {
            Some(0) => LINEAR_ATTENTION,
            _ => "indexed_attention",
        };
        let types = heads.iter().take(blocks as usize).map(layer_type).collect::<Vec<_>>();
        let heads = count(model, key::ATTENTION_HEAD_COUNT)?;
        let mut linear = json!({"num_heads": heads, "head_dim": count(model, key::KDA_HEAD_DIM),
        "short_conv_kernel_size": count(model, key::SSM_CONV_KERNEL)});
        if let Some(bound) = number(model, key::KDA_GATE_LOWER_BOUND) {
            linear["gate_lower_bound"] = bound.into();
        }
        let full_or_shared =
            |full: gguf::Value| if full.to_bool() == Some(true) { "full" } else { "shared" };
        let limits = list("swiglu_clamp_exp");
        let router = (count(model, key::EXPERT_GATING_FUNC) == Some(2)).then_some("sigmoid");
        let exported = exported
            .patterns(PARAMETERS.map(|(name, _)| name))
            .patterns(HYPER_CONNECTIONS.map(|(name, _)| name))
            .patterns([A_LOG, DT_BIAS, KV_B_PROJ, moe::ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .without(&[
                key::BLOCK_COUNT,
                key::ATTENTION_HEAD_COUNT_KV,
                key::ATTENTION_KEY_LENGTH,
                key::ATTENTION_LAYER_NORM_EPSILON,
            ])
            .set("num_hidden_layers", blocks)
            .set("num_key_value_heads", heads)
            .set("qk_rope_head_dim", 0)
            .set("mla_use_nope", true)
            .set(LAYER_TYPES, types)
            .set(LINEAR_ATTN_CONFIG, linear)
            .set_some(mtp::COUNT, mtp_layers)
            .set_some("scoring_func", router)
            .set_some(SWIGLU_LIMIT, limits.and_then(|limits| limits.iter().next()?.to_f64()))
            .set_some(
                INDEXER_TYPES,
                list("attention.indexer.types")
                    .map(|types| types.iter().map(full_or_shared).collect::<Vec<_>>()),
            );
        Some(exported)
    }
}

/// Returns the number of multi-token prediction layers.
fn mtp_layers(config: &Config) -> Result<u32, Error> {
    Ok(config.u32(&[mtp::COUNT])?.unwrap_or(0))
}
