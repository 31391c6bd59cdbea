//! DeepSeek: experts after some dense layers; compressed attention since the second generation.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::hparams::{Keys, Rope};
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures};
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, VocabularyKind, export, hparams, moe,
    mtp,
};
use crate::deepseek::convert::EXPERT_WIDTH;
use crate::schema::key;

const DEEPSEEK2_CLASS: &str = "DeepseekV2ForCausalLM";

const DEEPSEEK3_CLASS: &str = "DeepseekV3ForCausalLM";

pub(crate) const ATTENTION: Table = &[
    ("model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"),
    ("model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"),
    ("model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"),
];

pub(crate) const KEYS_AND_VALUES: &str = "model.layers.{}.self_attn.kv_b_proj.weight";

/// The number of the function by which routers of the third generation weigh.
const SIGMOID: u64 = 2;

/// Widths of compressed attention.
struct Widths {
    /// What keys and values are compressed to.
    rank: u32,
    /// Dimensions of a key head that rotate.
    rotated: u32,
    /// Those that do not.
    fixed: u32,
    /// Dimensions of a value head.
    value: u32,
}

impl Widths {
    fn of(config: &Config) -> Result<Self, Error> {
        let width = |field, meaning| config.require_u32(&[field], meaning);
        // None at all in GLM's newest.
        let rotated = config.u32(&[ROTATED])?;
        let rotated =
            rotated.ok_or_else(|| config.missing(ROTATED, "dimensions of a key that rotate"))?;
        Ok(Self {
            rank: width("kv_lora_rank", "what keys and values are compressed to")?,
            rotated,
            fixed: width("qk_nope_head_dim", "dimensions of a key that do not rotate")?,
            value: width("v_head_dim", "dimensions of a value")?,
        })
    }
}

pub(crate) const ROTATED: &str = "qk_rope_head_dim";

pub(crate) struct Deepseek2;

/// Description of [`Deepseek2`].
pub(crate) static DEEPSEEK2: Description = Description {
    classes: &[
        DEEPSEEK2_CLASS,
        DEEPSEEK3_CLASS,
        "KimiVLForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "YoutuForCausalLM",
        "YoutuVLForConditionalGeneration",
    ],
    architecture: "deepseek2",
    model_type: "deepseek_v2",
    pre_tokenizers: &["deepseek-v3", "deepseek-llm", "kimi-k2"],
    tensor_names: &[ATTENTION, moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: COMPRESSED_FIELDS,
    ..Description::DECODER
};

impl Converter for Deepseek2 {
    fn description(&self) -> &'static Description {
        &DEEPSEEK2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        (!is_glm(model)).then(|| export(model, exported)).flatten()
    }
}

/// Whether the model is GLM 4.7 Flash: others have no layers that guess further tokens.
fn is_glm(model: &Model) -> bool {
    export::count(model, key::NEXTN_PREDICT_LAYERS).is_some()
}

const COMPRESSED_FIELDS: &[(&str, &str)] = &[
    (key::EXPERT_COUNT, "n_routed_experts"),
    (key::EXPERT_SHARED_COUNT, "n_shared_experts"),
    (key::EXPERT_GROUP_COUNT, "n_group"),
    (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
    (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
    (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
    (key::ATTENTION_KV_LORA_RANK, "kv_lora_rank"),
    (key::ATTENTION_VALUE_LENGTH_MLA, "v_head_dim"),
    (key::ROPE_DIMENSION_COUNT, "qk_rope_head_dim"),
    (key::ATTENTION_INDEXER_HEAD_COUNT, "index_n_heads"),
    (key::ATTENTION_INDEXER_KEY_LENGTH, "index_head_dim"),
    (key::ATTENTION_INDEXER_TOP_K, "index_topk"),
];

/// GLM 4.7 Flash, whose layers that guess further tokens come along.
pub(crate) struct Glm4MoeLite;

/// Description of [`Glm4MoeLite`].
pub(crate) static GLM4_MOE_LITE: Description = Description {
    classes: &["Glm4MoeLiteForCausalLM"],
    model_type: "glm4_moe_lite",
    vocabulary: VocabularyKind::Glm4Moe,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    tensor_names: &[ATTENTION, mtp::NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    ..DEEPSEEK2
};

impl Converter for Glm4MoeLite {
    fn description(&self) -> &'static Description {
        &GLM4_MOE_LITE
    }

    fn base(&self) -> &'static dyn Converter {
        &Deepseek2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete_with_gate(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)?;
        further_keys(config, keys, true)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special_with_further(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        is_glm(model).then(|| export_with_further(model, exported)).flatten()
    }
}

/// Layers behind the last count, as they guess further tokens; said of each model, or of those that have
/// some.
pub(crate) fn further_keys(config: &Config, keys: &mut Keys, only_some: bool) -> Result<(), Error> {
    let further = config.u32(&[mtp::COUNT])?;
    let blocks = hparams::block_count(config)?.saturating_add(further.unwrap_or(0));
    keys.set(key::BLOCK_COUNT, blocks);
    keys.set_u32(key::NEXTN_PREDICT_LAYERS, further.filter(|&further| further > 0 || !only_some));
    Ok(())
}

pub(crate) fn special_with_further(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let blocks = hparams::block_count(config)?;
    let further = config.u32(&[mtp::COUNT])?.unwrap_or(0);
    let mut all = config.clone();
    all.set("num_hidden_layers", blocks.saturating_add(further));
    special(&all, name)
}

pub(crate) fn export_with_further(model: &Model, exported: Exported) -> Option<Exported> {
    let further = export::count(model, key::NEXTN_PREDICT_LAYERS);
    let blocks = export::count(model, key::BLOCK_COUNT)?.checked_sub(further.unwrap_or(0))?;
    let (class, model_type) = (exported.class, exported.model_type);
    let exported = export(model, exported)?
        .class(class, model_type)
        .without(&[key::BLOCK_COUNT])
        .set("num_hidden_layers", blocks)
        .set_some(mtp::COUNT, further);
    Some(exported)
}

fn complete(config: &mut Config) -> Result<(), Error> {
    // Not the rank of queries: without one they are not compressed.
    config.default("rms_norm_eps", 1e-6);
    config.default("rope_theta", 1e4);
    config.default("kv_lora_rank", 512);
    config.default("qk_rope_head_dim", 64);
    config.default("qk_nope_head_dim", 128);
    config.default("v_head_dim", 128);
    match config.class()? {
        DEEPSEEK3_CLASS => {
            config.default("n_group", 8);
            config.default("topk_group", 4);
            config.default("num_experts_per_tok", 8);
            config.default("routed_scaling_factor", 2.5);
            config.default("first_k_dense_replace", 3);
            complete_with_gate(config)?;
        }
        DEEPSEEK2_CLASS => {
            config.default("n_shared_experts", 2);
            config.default("routed_scaling_factor", 1.0);
        }
        _ => {}
    }
    Ok(())
}

/// The same of those whose gate programs do not know.
pub(crate) fn complete_with_gate(config: &mut Config) -> Result<(), Error> {
    // `transformers` writes it no more: the classes know no other function.
    config.default("scoring_func", "sigmoid");
    complete_third(config)
}

/// Of the third generation, and of models after it.
pub(crate) fn complete_third(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    // Newer configurations list the kinds of layers.
    let kinds = config.find(&["mlp_layer_types"]).and_then(|(_, kinds)| kinds.as_array());
    if let Some(dense) = kinds.map(|kinds| kinds.iter().take_while(|kind| *kind == "dense").count())
    {
        config.default("first_k_dense_replace", dense);
    }
    config.default("n_shared_experts", 1);
    config.default("norm_topk_prob", true);
    hparams::default_attention(config)
}

pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys_of_width(config, keys, Some(Widths::of(config)?.rotated))
}

/// The same, where the width of a head is this before others are known; llama.cpp's converter writes it of most.
pub(crate) fn keys_of_width(
    config: &Config,
    keys: &mut Keys,
    head_dim: Option<u32>,
) -> Result<(), Error> {
    let widths = Widths::of(config)?;
    // To programs, this is one key head that all query heads share.
    let mut shared = config.clone();
    shared.set("num_key_value_heads", 1);
    shared.set("head_dim", head_dim);
    keys.stated(&shared)?;

    let has_experts = config.u32(&["n_routed_experts"])?.is_some();
    let dense = match config.u32(&["first_k_dense_replace"])? {
        Some(dense) => dense,
        None if has_experts => 0,
        None => hparams::block_count(config)?,
    };
    keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense);
    keys.set(key::VOCAB_SIZE, config.require_u32(&["vocab_size"], "the number of tokens")?);
    keys.set_u32(key::ATTENTION_Q_LORA_RANK, config.u32(&["q_lora_rank"])?);
    keys.set(key::ATTENTION_KV_LORA_RANK, widths.rank);
    keys.set(key::ATTENTION_KEY_LENGTH, widths.rank.saturating_add(widths.rotated));
    keys.set(key::ATTENTION_VALUE_LENGTH, widths.rank);
    keys.set(key::ATTENTION_KEY_LENGTH_MLA, widths.fixed.saturating_add(widths.rotated));
    keys.set(key::ATTENTION_VALUE_LENGTH_MLA, widths.value);
    keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_WIDTH)?);
    keys.set(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?.unwrap_or(0));
    keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
    if config.bool("norm_topk_prob")? == Some(true) {
        keys.set(key::EXPERT_WEIGHTS_NORM, true);
    }
    keys.set(key::ROPE_DIMENSION_COUNT, widths.rotated);
    // A tenth of what the key says elsewhere: programs know this of the architecture.
    let scale = Rope::of(config)?.f64("mscale_all_dim")?;
    keys.set_f32(key::ROPE_SCALING_YARN_LOG_MULTIPLIER, scale.map(|scale| (0.1 * scale) as f32));
    Ok(())
}

pub(crate) fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    // Layers behind the last predict further tokens; programs do not use them yet.
    let blocks = hparams::block_count(config)?;
    if block_of(name).is_some_and(|block| block >= blocks) {
        return Ok(Some(Mapping::Dropped));
    }
    let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
    if tied && matches!(name, "lm_head.weight" | "model.lm_head.weight") {
        return Ok(Some(Mapping::Dropped));
    }
    if let Some(bias) = moe::router_bias(moe::ROUTER_BIAS, name) {
        return Ok(Some(bias));
    }
    if let Some(&[block]) = captures(KEYS_AND_VALUES, name).as_deref() {
        return keys_and_values(config, block).map(Some);
    }
    let width = || config.require_u32(EXPERT_WIDTH, "the feed-forward width of an expert");
    moe::mapping(config, name, width)
}

pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let key = |name: &str| format!("{architecture}.{name}");
    let number = |key| export::count(model, key);
    let gating = number("expert_gating_func");
    let is_third = gating == Some(SIGMOID);
    let groups = number("expert_group_count").unwrap_or(1);
    let (class, model_type, method) = match is_third {
        true => (DEEPSEEK3_CLASS, "deepseek_v3", "noaux_tc"),
        false if groups > 1 => (DEEPSEEK2_CLASS, "deepseek_v2", "group_limited_greedy"),
        false => (DEEPSEEK2_CLASS, "deepseek_v2", "greedy"),
    };
    let rotated = number("rope.dimension_count")?;
    let mut exported = exported
        .class(class, model_type)
        .patterns([moe::ROUTER_BIAS, KEYS_AND_VALUES])
        .patterns(moe::one_by_one())
        // One head that all share, as wide as what is compressed.
        .without(&[key::ATTENTION_HEAD_COUNT_KV, key::ATTENTION_KEY_LENGTH])
        .set("num_key_value_heads", number("attention.head_count")?)
        .set("qk_nope_head_dim", number("attention.key_length_mla")?.checked_sub(rotated)?)
        // Without one, queries are not compressed; the class has a default.
        .set("q_lora_rank", number("attention.q_lora_rank"))
        .set("topk_method", method)
        .set("norm_topk_prob", metadata.bool(&key("expert_weights_norm")) == Some(true));
    if let Some(gating) = gating {
        let function = if gating == SIGMOID { "sigmoid" } else { "softmax" };
        exported = exported.set("scoring_func", function);
    }
    if let Some(gguf::Value::F32(tenth)) = metadata.get(&key("rope.scaling.yarn_log_multiplier")) {
        // In decimal, where a tenth is exact. Both are the same in all models so far.
        let scale = tenth.to_string().parse::<f64>().ok()? * 10.0;
        let scale = (scale * 1e6).round() / 1e6;
        exported = exported.scaling("mscale", scale).scaling("mscale_all_dim", scale);
    }
    Some(exported)
}

/// The matrix that unpacks keys and values, head by head. That of keys is transposed: programs
/// apply it to queries instead.
pub(crate) fn keys_and_values(config: &Config, block: u32) -> Result<Mapping, Error> {
    let Widths { rank, fixed, value, .. } = Widths::of(config)?;
    let heads = hparams::head_count_kv(config)?;
    let part = |start: u32, len: u32| {
        let shape = |dims: &[u64]| {
            Shape::new(dims)
                .unwrap_or_else(|| unreachable!("three dimensions are no more than four"))
        };
        let (columns, rows, matrices) = (rank.into(), u64::from(len), u64::from(heads));
        let from = shape(&[columns, rows.saturating_mul(matrices)]);
        let to = shape(&[columns, rows, matrices]);
        let pick = Step::Pick { groups: heads.into(), start: start.into(), len: len.into() };
        vec![pick, Step::Reshape { from, to }]
    };
    let made = |name, steps| MappedTensor {
        name: format!("blk.{block}.{name}.weight"),
        steps,
        slot: None,
    };
    let mut keys = part(0, fixed);
    keys.push(Step::Transpose);
    Ok(Mapping::Made(vec![made("attn_k_b", keys), made("attn_v_b", part(fixed, value))]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_third_generation_weighs_by_the_sigmoid_where_nothing_is_said() {
        let gate = |class: &str| {
            let mut config =
                Config::of(json!({"architectures": [class], "num_attention_heads": 4}));
            complete(&mut config).unwrap();
            config.find(&["scoring_func"]).map(|(_, value)| value.clone())
        };
        assert_eq!(gate(DEEPSEEK3_CLASS), Some(json!("sigmoid")));
        assert_eq!(gate(DEEPSEEK2_CLASS), None);
    }
}
