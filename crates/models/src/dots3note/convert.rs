//! Conversion of `Dots3NoteForCausalLM`. Layers with a sliding window take their MLA dimensions
//! from the fields `swa_*`; head counts become an array. The rescaling of the latents is multiplied
//! into the norms of the LoRA projections.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, has};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, hparams, moe, mtp,
};
use crate::deepseek2::convert::{KV_B_PROJ, MLA_NAMES, split_kv_b};
use crate::deepseek32::convert::INDEXER;
use crate::schema::{HyperParameters, key};
use crate::{deepseek2, deepseek32};

const NAMES: Table = &[
    ("model.layers.{}.self_attn.linear_gate", "blk.{}.attn_gate"),
    ("model.layers.{}.self_attn.k_rope_only_layernorm", "blk.{}.attn_k_norm"),
];

/// Embedding of the multi-token prediction layer; its presence tells that the checkpoint has the
/// layer.
const MTP_EMBEDDING: &str = "model.mtp.embed_tokens.weight";

const LAYER_TYPES: &str = "layer_types";

const SLIDING_ATTENTION: &str = "sliding_attention";

const SWA_HEADS: &str = "swa_num_attention_heads";

const RESCALE_LATENTS: &str = "apply_mla_qkv_lora_rescale";

/// Fields, and the only value that runtimes support.
const REQUIRED_VALUES: [(&str, &str); 5] = [
    ("normalization", "RMSNorm"),
    ("final_norm", "RMSNorm"),
    ("topk_method", "noaux_tc"),
    ("attention_gate_type", "headwise"),
    ("swa_attention_gate_type", "headwise"),
];

/// Fields that have a variant `swa_*` for layers with a sliding window.
const SWA_FIELDS: [&str; 3] = ["kv_lora_rank", "qk_nope_head_dim", "v_head_dim"];

pub(crate) struct Dots3Note;

/// Description of [`Dots3Note`].
pub(crate) static DOTS3_NOTE: Description = Description {
    classes: &[
        "Dots3NoteTextForCausalLM",
        "Dots3NoteForCausalLM",
        "Dots3NoteForConditionalGeneration",
    ],
    architecture: "dots3note",
    model_type: "dots3_note_text",
    vocabulary: VocabularyKind::Dots3,
    pre_tokenizers: &["qwen2"],
    tensor_names: &[NAMES, MLA_NAMES, INDEXER, mtp::NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "n_routed_experts"),
        (key::EXPERT_SHARED_COUNT, "n_shared_experts"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
        (key::ATTENTION_KV_LORA_RANK, "kv_lora_rank"),
        (key::ATTENTION_KV_LORA_RANK_SWA, "swa_kv_lora_rank"),
        (key::ATTENTION_VALUE_LENGTH_MLA, "v_head_dim"),
        (key::ATTENTION_VALUE_LENGTH_MLA_SWA, "swa_v_head_dim"),
        (key::ATTENTION_KEY_LENGTH_MLA_SWA, "swa_head_dim"),
        (key::ROPE_DIMENSION_COUNT, "qk_rope_head_dim"),
        (key::ATTENTION_SLIDING_WINDOW, "sliding_window_size"),
        (key::ATTENTION_INDEXER_HEAD_COUNT, "index_n_heads"),
        (key::ATTENTION_INDEXER_KEY_LENGTH, "index_head_dim"),
        (key::ATTENTION_INDEXER_TOP_K, "index_topk"),
        (key::ROPE_FREQ_BASE_SWA, "swa_rope_theta"),
    ],
    required_flags: &[
        ("use_dsa", true),
        ("k_rope_only_layernorm", true),
        ("use_dynamic_rsf", false),
        ("moe_gating_fp32", false),
    ],
    ..Description::DECODER
};

impl Converter for Dots3Note {
    fn description(&self) -> &'static Description {
        &DOTS3_NOTE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        for (field, required) in REQUIRED_VALUES {
            let other = config.find(&[field]).map(|(_, stated)| stated.clone());
            if let Some(other) = other.filter(|stated| stated != required) {
                return Err(hparams::not_computed(config, field, other));
            }
        }
        Ok(())
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        let is_there = names.map(|name| name == MTP_EMBEDDING).max().unwrap_or(false);
        config.set(mtp::COUNT, u32::from(is_there));
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let size = |field: &str| config.require_u32(&[field], "a size of attention");
        for field in ["n_group", "topk_group"] {
            if let Some(groups) = config.u32(&[field])?.filter(|&groups| groups != 1) {
                return Err(hparams::not_computed(config, field, groups));
            }
        }
        deepseek2::convert::mla_keys_with_head_dim(config, keys, None)?;
        let blocks = blocks(config)?;
        keys.set(key::BLOCK_COUNT, blocks);
        let sliding = (0..blocks).map(|layer| is_sliding(config, layer));
        let sliding = sliding.collect::<Result<Vec<bool>, _>>()?;
        let (full_heads, swa_heads) = (hparams::head_count(config)?, size(SWA_HEADS)?);
        let signed = |heads: u32| i32::try_from(heads).unwrap_or(i32::MAX);
        let heads = sliding.iter().map(|is| signed(if *is { swa_heads } else { full_heads }));
        keys.set(key::ATTENTION_HEAD_COUNT, Array::from(&heads.collect::<Vec<i32>>()[..]));
        let trunk = &sliding[..hparams::block_count(config)? as usize];
        keys.set(key::ATTENTION_SLIDING_WINDOW, size("sliding_window_size")?);
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(trunk));
        let (rank, rope_dims) = (size("swa_kv_lora_rank")?, size("swa_qk_rope_head_dim")?);
        if rope_dims != size("qk_rope_head_dim")? {
            return Err(hparams::not_computed(config, "swa_qk_rope_head_dim", rope_dims));
        }
        let queries = size("swa_q_lora_rank")?;
        if queries != size("q_lora_rank")? {
            return Err(hparams::not_computed(config, "swa_q_lora_rank", queries));
        }
        keys.set(key::ATTENTION_KV_LORA_RANK_SWA, rank);
        keys.set(key::ATTENTION_KEY_LENGTH_SWA, rank.saturating_add(rope_dims));
        keys.set(key::ATTENTION_VALUE_LENGTH_SWA, rank);
        let width = size("swa_qk_nope_head_dim")?.saturating_add(rope_dims);
        keys.set(key::ATTENTION_KEY_LENGTH_MLA_SWA, width);
        keys.set(key::ATTENTION_VALUE_LENGTH_MLA_SWA, size("swa_v_head_dim")?);
        let mtp_layers = config.u32(&[mtp::COUNT])?.filter(|&count| count > 0);
        keys.set_u32(key::NEXTN_PREDICT_LAYERS, mtp_layers);
        deepseek32::convert::indexer_keys(config, keys)?;
        let indexed: Vec<bool> = trunk.iter().map(|is| !is).collect();
        keys.set(key::ATTENTION_INDEXER_TYPES, Array::from(&indexed[..]));
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name.starts_with("vision_encoder.") || name.starts_with("audio_encoder.")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name == MTP_EMBEDDING {
            let block = hparams::block_count(config)?;
            return Ok(Some(Mapping::one(format!("blk.{block}.nextn.embed_tokens.weight"), [])));
        }
        if block_of(name).is_some_and(|block| blocks(config).is_ok_and(|blocks| block >= blocks)) {
            return Ok(Some(Mapping::Unknown));
        }
        if name == "lm_head.weight" && config.bool("tie_word_embeddings")? == Some(true) {
            return Ok(Some(Mapping::Dropped));
        }
        if let Some(&[block]) = captures(KV_B_PROJ, name).as_deref() {
            return split_kv_b(&layer_config(config, block)?, block).map(Some);
        }
        moe::routed(config, name, moe::ROUTER_BIAS)
    }

    // Folds the factor sqrt(hidden size / rank) of the latents into their norms.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        if config.bool(RESCALE_LATENTS)? != Some(true) {
            return Ok(Vec::new());
        }
        let rank = match () {
            () if name.ends_with(".attn_q_a_norm.weight") => {
                config.require_u32(&["q_lora_rank"], "the query LoRA rank")?
            }
            () if name.ends_with(".attn_kv_a_norm.weight") => {
                let layer =
                    name.split('.').nth(1).and_then(|layer| layer.parse().ok()).unwrap_or(0);
                let own = layer_config(config, layer)?;
                own.require_u32(&["kv_lora_rank"], "the KV LoRA rank")?
            }
            () => return Ok(Vec::new()),
        };
        let factor = (f64::from(hparams::width(config)?) / f64::from(rank)).sqrt();
        Ok(vec![Step::Map(Function::Times(factor as f32))])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS).unwrap_or(0);
        let all = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let blocks = all.checked_sub(mtp_layers)?;
        let sliding = model.metadata().array("dots3note.attention.sliding_window_pattern")?;
        let sliding: Vec<bool> = sliding.iter().map(|is| is.to_bool() == Some(true)).collect();
        let heads = |is_sliding: bool| {
            let mut layers = (0..).zip(&sliding).filter(|(_, is)| **is == is_sliding);
            let (layer, _) = layers.next()?;
            hyper.u64_in_layer(key::ATTENTION_HEAD_COUNT, layer).ok()
        };
        let (full_heads, swa_heads) = (heads(false).or(heads(true)), heads(true).or(heads(false)));
        let rope_dims = count(model, key::ROPE_DIMENSION_COUNT)?;
        let nope_dims = |key: &str| count(model, key)?.checked_sub(rope_dims);
        let queries = count(model, key::ATTENTION_Q_LORA_RANK)?;
        let layer_type = |is: &bool| if *is { SLIDING_ATTENTION } else { "full_attention" };
        let norm = model.metadata().bool("dots3note.expert_weights_norm") == Some(true);
        let router = (count(model, key::EXPERT_GATING_FUNC) == Some(2)).then_some("sigmoid");
        let mut exported = exported
            .patterns([moe::ROUTER_BIAS, KV_B_PROJ])
            .patterns(moe::one_by_one())
            .without(&[
                key::BLOCK_COUNT,
                key::ATTENTION_HEAD_COUNT,
                key::ATTENTION_HEAD_COUNT_KV,
                key::ATTENTION_KEY_LENGTH,
            ])
            .set("num_hidden_layers", blocks)
            .set("num_attention_heads", full_heads)
            .set("num_key_value_heads", full_heads)
            .set(SWA_HEADS, swa_heads)
            .set("q_lora_rank", queries)
            .set("swa_q_lora_rank", queries)
            .set("swa_qk_rope_head_dim", rope_dims)
            .set("qk_nope_head_dim", nope_dims("attention.key_length_mla"))
            .set("swa_qk_nope_head_dim", nope_dims("attention.key_length_mla_swa"))
            .set("norm_topk_prob", norm)
            .set_some("scoring_func", router)
            .set(LAYER_TYPES, sliding.iter().map(layer_type).collect::<Vec<_>>())
            .unwritten(mtp::COUNT, Value::from(mtp_layers));
        let embedding = format!("blk.{blocks}.nextn.embed_tokens.weight");
        if has(model, &embedding) {
            exported = exported.first([MTP_EMBEDDING]);
        }
        Some(exported)
    }
}

fn blocks(config: &Config) -> Result<u32, Error> {
    let mtp_layers = config.u32(&[mtp::COUNT])?.unwrap_or(0);
    hparams::possible(config, "layers", hparams::block_count(config)?.saturating_add(mtp_layers))
}

/// Returns whether a layer has a sliding window; multi-token prediction layers have one.
fn is_sliding(config: &Config, layer: u32) -> Result<bool, Error> {
    if layer >= hparams::block_count(config)? {
        return Ok(true);
    }
    let layer_types =
        config.find(&[LAYER_TYPES]).and_then(|(_, layer_types)| layer_types.as_array());
    let layer_type = layer_types.and_then(|layer_types| layer_types.get(layer as usize));
    layer_type
        .map(|layer_type| layer_type == SLIDING_ATTENTION)
        .ok_or_else(|| config.missing(LAYER_TYPES, "the type of each layer"))
}

/// Returns the configuration of a layer, with the dimensions of its type in the fields without
/// `swa_`.
fn layer_config(config: &Config, layer: u32) -> Result<Config, Error> {
    let mut own = config.clone();
    let mut heads = "num_attention_heads".to_owned();
    if is_sliding(config, layer)? {
        heads = SWA_HEADS.to_owned();
        for field in SWA_FIELDS {
            let width = config.require_u32(
                &[&format!("swa_{field}")],
                "a size of attention with a sliding window",
            )?;
            own.set(field, width);
        }
    }
    let heads = config.require_u32(&[&heads], "the number of heads")?;
    own.set("num_attention_heads", heads);
    own.set("num_key_value_heads", heads);
    Ok(own)
}
