//! GLM 5.3: delta attention in most layers, compressed attention with an indexer in the others, and several
//! streams of the residual.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::{count, number};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures};
use crate::convert::{Converter, Exported, Mapping, VocabularyKind, hparams, moe, mtp};
use crate::deepseek2::convert::{ATTENTION, KEYS_AND_VALUES, keys_and_values};
use crate::deepseek4::convert::MIXES;
use crate::deepseek32::convert::INDEXER;
use crate::glm_dsa::convert::INDEXER_KINDS;
use crate::kimi_linear::convert::{DECAY, RATE};
use crate::{deepseek32, hy_v4, kimi_linear};

/// Names without an end, and ours.
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

const KINDS: &str = "layer_types";

const LINEAR_KIND: &str = "linear_attention";

const LINEAR: &str = "linear_attn_config";

const LIMIT: &str = "swiglu_limit";

const TAIL: &str = "index_kpool_always_select_tail";

/// What norms with a mean add, which no field says.
const EPSILON: f32 = 1e-6;

const STREAM_COUNT: &str = "hc_mult";

pub(crate) struct Glm5Next;

impl Converter for Glm5Next {
    fn classes(&self) -> &'static [&'static str] {
        &["Glm5NextForConditionalGeneration"]
    }

    fn architecture(&self) -> &'static str {
        "glm5-next"
    }

    fn model_type(&self) -> &'static str {
        "glm5_next"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::Glm4Moe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["glm4", "chatglm-bpe"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[
            moe::BESIDE_SHARED,
            kimi_linear::convert::NAMES,
            ATTENTION,
            INDEXER,
            mtp::NAMES,
            LLAMA_LIKE,
        ]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("expert_count", "n_routed_experts"),
            ("expert_shared_count", "n_shared_experts"),
            ("expert_group_count", "n_group"),
            ("expert_group_used_count", "topk_group"),
            ("expert_weights_scale", "routed_scaling_factor"),
            ("expert_weights_norm", "norm_topk_prob"),
            ("leading_dense_block_count", "first_k_dense_replace"),
            ("attention.q_lora_rank", "q_lora_rank"),
            ("attention.kv_lora_rank", "kv_lora_rank"),
            ("attention.key_length_mla", "qk_nope_head_dim"),
            ("attention.value_length_mla", "v_head_dim"),
            ("attention.indexer.head_count", "index_n_heads"),
            ("attention.indexer.key_length", "index_head_dim"),
            ("attention.indexer.top_k", "index_topk"),
            ("attention.indexer.kpool", "index_kpool"),
            ("attention.indexer.kpool_select_tail", TAIL),
            ("hyper_connection.count", STREAM_COUNT),
            ("hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"),
            ("hyper_connection.epsilon", "hc_eps"),
        ]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("mla_use_nope", true), ("mhc", true)]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let number =
            |field: &str| config.require_u32(&[field], "a width of attention or of experts");
        if let Some(rotated) = config.u32(&["qk_rope_head_dim"])?.filter(|&rotated| rotated > 0) {
            return Err(hparams::not_computed(config, "qk_rope_head_dim", rotated));
        }
        let mut of_model = config.clone();
        of_model.set("head_dim", Value::Null);
        keys.stated(&of_model)?;
        let further = further(config)?;
        let blocks = hparams::block_count(config)?.saturating_add(further);
        let blocks = hparams::possible(config, "layers", blocks)?;
        keys.set("block_count", blocks);
        let kinds = config.find(&[KINDS]).and_then(|(_, kinds)| kinds.as_array());
        let kinds = kinds.ok_or_else(|| config.missing(KINDS, "what each layer is"))?;
        let mut heads: Vec<i32> =
            kinds.iter().map(|kind| i32::from(*kind != LINEAR_KIND)).collect();
        heads.resize(blocks as usize, 1);
        keys.set("attention.head_count_kv", Array::from(&heads[..]));
        keys.vocab_size(config)?;
        keys.set("attention.layer_norm_epsilon", EPSILON);
        keys.set_u32("nextn_predict_layers", Some(further).filter(|&further| further > 0));
        let linear = config.part(LINEAR);
        let of_linear = |field: &str| linear.require_u32(&[field], "a size of linear attention");
        keys.set("ssm.conv_kernel", of_linear("short_conv_kernel_size")?);
        keys.set("kda.head_dim", of_linear("head_dim")?);
        keys.set_f32("kda.gate_lower_bound", linear.f32(&["gate_lower_bound"])?);
        let rank = number("kv_lora_rank")?;
        keys.set("attention.q_lora_rank", number("q_lora_rank")?);
        keys.set("attention.kv_lora_rank", rank);
        keys.set("rope.dimension_count", 0u32);
        keys.set("attention.key_length", rank);
        keys.set("attention.value_length", rank);
        keys.set("attention.key_length_mla", number("qk_nope_head_dim")?);
        keys.set("attention.value_length_mla", number("v_head_dim")?);
        deepseek32::convert::indexer_keys(config, keys)?;
        keys.set("attention.indexer.kpool", number("index_kpool")?);
        keys.set("attention.indexer.kpool_select_tail", config.bool(TAIL)?.unwrap_or(true));
        if let Some((_, kinds)) = config.find(&[INDEXER_KINDS]) {
            let kinds = kinds.as_array().into_iter().flatten();
            let is_full: Vec<bool> = kinds.map(|kind| kind == "full").collect();
            keys.set("attention.indexer.types", Array::from(&is_full[..]));
        }
        keys.set("hyper_connection.count", number(STREAM_COUNT)?);
        keys.set("hyper_connection.sinkhorn_iterations", number("hc_sinkhorn_iters")?);
        let epsilon = config.require_f32(&["hc_eps"], "what mixing streams adds")?;
        keys.set("hyper_connection.epsilon", epsilon);
        let dense = config.u32(&["first_k_dense_replace"])?;
        let dense = dense.ok_or_else(|| config.missing("first_k_dense_replace", "dense layers"))?;
        keys.set("leading_dense_block_count", dense);
        keys.set("expert_feed_forward_length", number("moe_intermediate_size")?);
        keys.set("expert_shared_count", number("n_shared_experts")?);
        let scale = config.require_f32(&["routed_scaling_factor"], "the factor of experts")?;
        keys.set("expert_weights_scale", scale);
        keys.set("expert_weights_norm", config.bool("norm_topk_prob")?.unwrap_or(false));
        if let Some(limit) = config.f32(&[LIMIT])? {
            let limits = vec![limit; blocks as usize];
            keys.set("swiglu_clamp_exp", Array::from(&limits[..]));
            keys.set("swiglu_clamp_shexp", Array::from(&limits[..]));
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let blocks = hparams::block_count(config)?.saturating_add(further(config)?);
        if block_of(name).is_some_and(|block| block >= blocks) {
            return Ok(Some(Mapping::Unknown));
        }
        if name == "lm_head.weight" && config.bool("tie_word_embeddings")? == Some(true) {
            return Ok(Some(Mapping::Dropped));
        }
        let parameter = |names: &[_]| hy_v4::convert::parameter(names, name);
        if let Some(mapping) = parameter(&PARAMETERS).or_else(|| parameter(&MIXES)) {
            return Ok(Some(mapping));
        }
        let of_block = |pattern| match captures(pattern, name).as_deref() {
            Some(&[block]) => Some(block),
            _ => None,
        };
        if let Some(block) = of_block(KEYS_AND_VALUES) {
            let mut every = config.clone();
            every.set("num_key_value_heads", hparams::head_count(config)?);
            return keys_and_values(&every, block).map(Some);
        }
        if let Some(block) = of_block(DECAY) {
            return kimi_linear::convert::flat_decay(config, block).map(Some);
        }
        if let Some(block) = of_block(RATE) {
            return Ok(Some(Mapping::one(format!("blk.{block}.ssm_dt.bias"), [])));
        }
        moe::routed(config, name)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let width = config.part(LINEAR).u32(&["head_dim"])?.unwrap_or(0);
        kimi_linear::convert::steps_of(config, name, width)
    }

    fn keeps_f32(&self, _: &Config, name: &str) -> bool {
        name.contains("indexer_compressor_")
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let metadata = model.metadata();
        let list = |key: &str| metadata.array(&format!("glm5-next.{key}"));
        let further = count(model, "nextn_predict_layers");
        let blocks = count(model, "block_count")?.checked_sub(further.unwrap_or(0))?;
        let heads = list("attention.head_count_kv")?;
        let kind = |heads: gguf::Value| match heads.to_u64() {
            Some(0) => LINEAR_KIND,
            _ => "indexed_attention",
        };
        let kinds = heads.iter().take(blocks as usize).map(kind).collect::<Vec<_>>();
        let heads = count(model, "attention.head_count")?;
        let mut linear = json!({"num_heads": heads, "head_dim": count(model, "kda.head_dim"),
        "short_conv_kernel_size": count(model, "ssm.conv_kernel")});
        if let Some(bound) = number(model, "kda.gate_lower_bound") {
            linear["gate_lower_bound"] = bound.into();
        }
        let full = |full: gguf::Value| if full.to_bool() == Some(true) { "full" } else { "shared" };
        let limits = list("swiglu_clamp_exp");
        let function = (count(model, "expert_gating_func") == Some(2)).then_some("sigmoid");
        let exported = exported
            .patterns(PARAMETERS.map(|(name, _)| name))
            .patterns(MIXES.map(|(name, _)| name))
            .patterns([DECAY, RATE, KEYS_AND_VALUES, moe::ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .without(&[
                "block_count",
                "attention.head_count_kv",
                "attention.key_length",
                "attention.layer_norm_epsilon",
            ])
            .set("num_hidden_layers", blocks)
            .set("num_key_value_heads", heads)
            .set("qk_rope_head_dim", 0)
            .set("mla_use_nope", true)
            .set(KINDS, kinds)
            .set(LINEAR, linear)
            .set_some(mtp::COUNT, further)
            .set_some("scoring_func", function)
            .set_some(LIMIT, limits.and_then(|limits| limits.iter().next()?.to_f64()))
            .set_some(
                INDEXER_KINDS,
                list("attention.indexer.types")
                    .map(|kinds| kinds.iter().map(full).collect::<Vec<_>>()),
            );
        Some(exported)
    }
}

fn further(config: &Config) -> Result<u32, Error> {
    Ok(config.u32(&[mtp::COUNT])?.unwrap_or(0))
}
