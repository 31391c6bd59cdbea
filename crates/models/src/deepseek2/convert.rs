//! Conversion of DeepSeek V2 and V3, Kimi K2 and their relatives. `kv_b_proj` is split by head into
//! `attn_k_b` (transposed, so that runtimes apply it to the query) and `attn_v_b`; the KV head
//! count is 1, the head of the latent. Multi-token prediction layers are dropped except for GLM 4.7
//! Flash.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures};
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, VocabularyKind, defaults, export,
    hparams, moe, mtp,
};
use crate::deepseek::convert::EXPERT_WIDTH;
use crate::schema::key;

const DEEPSEEK2_CLASS: &str = "DeepseekV2ForCausalLM";

const DEEPSEEK3_CLASS: &str = "DeepseekV3ForCausalLM";

pub(crate) const MLA_NAMES: Table = &[
    ("model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"),
    ("model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"),
    ("model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"),
];

pub(crate) const KV_B_PROJ: &str = "model.layers.{}.self_attn.kv_b_proj.weight";

/// `expert_gating_func` of the sigmoid router (DeepSeek V3).
const SIGMOID: u64 = 2;

/// Dimensions of multi-head latent attention.
struct MlaDims {
    /// KV LoRA rank: width of the latent.
    rank: u32,
    /// Dimensions of a key with RoPE.
    rope: u32,
    /// Dimensions of a key without RoPE.
    nope: u32,
    /// Dimensions of a value head.
    value: u32,
}

impl MlaDims {
    fn of(config: &Config) -> Result<Self, Error> {
        let width = |field, meaning| config.require_u32(&[field], meaning);
        // May be 0 (GLM 5.3), which `require_u32` rejects.
        let rope = config.u32(&[QK_ROPE_HEAD_DIM])?;
        let rope = rope
            .ok_or_else(|| config.missing(QK_ROPE_HEAD_DIM, "the dimensions of a key with RoPE"))?;
        Ok(Self {
            rank: width("kv_lora_rank", "the KV LoRA rank")?,
            rope,
            nope: width("qk_nope_head_dim", "the dimensions of a key without RoPE")?,
            value: width("v_head_dim", "the dimensions of a value head")?,
        })
    }
}

pub(crate) const QK_ROPE_HEAD_DIM: &str = "qk_rope_head_dim";

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
    tensor_names: &[MLA_NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: MLA_FIELDS,
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
        mla_keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_mla_tensor(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        (!is_glm_4_7_flash(model)).then(|| export_mla(model, exported)).flatten()
    }
}

/// Returns whether the model is GLM 4.7 Flash, the only one with multi-token prediction layers.
fn is_glm_4_7_flash(model: &Model) -> bool {
    export::count(model, key::NEXTN_PREDICT_LAYERS).is_some()
}

const MLA_FIELDS: &[(&str, &str)] = &[
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

/// GLM 4.7 Flash, whose multi-token prediction layers are converted.
pub(crate) struct Glm4MoeLite;

/// Description of [`Glm4MoeLite`].
pub(crate) static GLM4_MOE_LITE: Description = Description {
    classes: &["Glm4MoeLiteForCausalLM"],
    model_type: "glm4_moe_lite",
    vocabulary: VocabularyKind::Glm4Moe,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    tensor_names: &[MLA_NAMES, mtp::NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
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
        complete_sigmoid_router(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        mla_keys(config, keys)?;
        mtp_keys(config, keys, true)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_mla_tensor_with_mtp(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        is_glm_4_7_flash(model).then(|| export_mla_with_mtp(model, exported)).flatten()
    }
}

/// Counts the multi-token prediction layers among the blocks, and writes their number (with
/// `only_if_any` only if it is above 0).
pub(crate) fn mtp_keys(config: &Config, keys: &mut Keys, only_if_any: bool) -> Result<(), Error> {
    let mtp_layers = config.u32(&[mtp::COUNT])?;
    let blocks = hparams::block_count(config)?.saturating_add(mtp_layers.unwrap_or(0));
    keys.set(key::BLOCK_COUNT, blocks);
    keys.set_u32(
        key::NEXTN_PREDICT_LAYERS,
        mtp_layers.filter(|&mtp_layers| mtp_layers > 0 || !only_if_any),
    );
    Ok(())
}

pub(crate) fn map_mla_tensor_with_mtp(
    config: &Config,
    name: &str,
) -> Result<Option<Mapping>, Error> {
    let blocks = hparams::block_count(config)?;
    let mtp_layers = config.u32(&[mtp::COUNT])?.unwrap_or(0);
    let mut all = config.clone();
    all.set("num_hidden_layers", blocks.saturating_add(mtp_layers));
    map_mla_tensor(&all, name)
}

pub(crate) fn export_mla_with_mtp(model: &Model, exported: Exported) -> Option<Exported> {
    let mtp_layers = export::count(model, key::NEXTN_PREDICT_LAYERS);
    let blocks = export::count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers.unwrap_or(0))?;
    let (class, model_type) = (exported.class, exported.model_type);
    let exported = export_mla(model, exported)?
        .class(class, model_type)
        .without(&[key::BLOCK_COUNT])
        .set("num_hidden_layers", blocks)
        .set_some(mtp::COUNT, mtp_layers);
    Some(exported)
}

fn complete(config: &mut Config) -> Result<(), Error> {
    // `q_lora_rank` has no default: without it the query projection has full rank.
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
            complete_sigmoid_router(config)?;
        }
        DEEPSEEK2_CLASS => {
            config.default("n_shared_experts", 2);
            config.default("routed_scaling_factor", 1.0);
        }
        _ => {}
    }
    Ok(())
}

/// Completes the configuration of classes with a sigmoid router.
pub(crate) fn complete_sigmoid_router(config: &mut Config) -> Result<(), Error> {
    // New versions of `transformers` leave the field out: the classes have no other router.
    config.default("scoring_func", "sigmoid");
    complete_v3(config)
}

/// Completes the configuration of DeepSeek V3 and later models.
pub(crate) fn complete_v3(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    // New configurations list the type of each layer.
    let types = config.find(&["mlp_layer_types"]).and_then(|(_, types)| types.as_array());
    if let Some(dense) = types.map(|types| types.iter().take_while(|name| *name == "dense").count())
    {
        config.default("first_k_dense_replace", dense);
    }
    config.default("n_shared_experts", 1);
    config.default("norm_topk_prob", true);
    defaults::attention(config)
}

pub(crate) fn mla_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    mla_keys_with_head_dim(config, keys, Some(MlaDims::of(config)?.rope))
}

/// Writes the keys, with `head_dim` as the key and value length that llama.cpp's converter writes
/// before those of MLA replace it.
pub(crate) fn mla_keys_with_head_dim(
    config: &Config,
    keys: &mut Keys,
    head_dim: Option<u32>,
) -> Result<(), Error> {
    let dims = MlaDims::of(config)?;
    // MLA with absorbed projections has one KV head, which all query heads share.
    let mut with_one_kv_head = config.clone();
    with_one_kv_head.set("num_key_value_heads", 1);
    with_one_kv_head.set("head_dim", head_dim);
    keys.stated(&with_one_kv_head)?;

    let has_experts = config.u32(&["n_routed_experts"])?.is_some();
    let dense = match config.u32(&["first_k_dense_replace"])? {
        Some(dense) => dense,
        None if has_experts => 0,
        None => hparams::block_count(config)?,
    };
    keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense);
    keys.set(key::VOCAB_SIZE, config.require_u32(&["vocab_size"], "the vocabulary size")?);
    keys.set_u32(key::ATTENTION_Q_LORA_RANK, config.u32(&["q_lora_rank"])?);
    keys.set(key::ATTENTION_KV_LORA_RANK, dims.rank);
    keys.set(key::ATTENTION_KEY_LENGTH, dims.rank.saturating_add(dims.rope));
    keys.set(key::ATTENTION_VALUE_LENGTH, dims.rank);
    keys.set(key::ATTENTION_KEY_LENGTH_MLA, dims.nope.saturating_add(dims.rope));
    keys.set(key::ATTENTION_VALUE_LENGTH_MLA, dims.value);
    keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_WIDTH)?);
    keys.set(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?.unwrap_or(0));
    keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
    if config.bool("norm_topk_prob")? == Some(true) {
        keys.set(key::EXPERT_WEIGHTS_NORM, true);
    }
    keys.set(key::ROPE_DIMENSION_COUNT, dims.rope);
    // For this architecture the key holds a tenth of the multiplier; runtimes multiply it by 10.
    let scale = Rope::of(config)?.f64("mscale_all_dim")?;
    keys.set_f32(key::ROPE_SCALING_YARN_LOG_MULTIPLIER, scale.map(|scale| (0.1 * scale) as f32));
    Ok(())
}

pub(crate) fn map_mla_tensor(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    // Multi-token prediction layers; runtimes do not use them.
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
    if let Some(&[block]) = captures(KV_B_PROJ, name).as_deref() {
        return split_kv_b(config, block).map(Some);
    }
    let width = || config.require_u32(EXPERT_WIDTH, "the FFN size of a routed expert");
    moe::mapping(config, name, width)
}

pub(crate) fn export_mla(model: &Model, exported: Exported) -> Option<Exported> {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let key = |name: &str| format!("{architecture}.{name}");
    let number = |key| export::count(model, key);
    let gating = number("expert_gating_func");
    let is_v3 = gating == Some(SIGMOID);
    let groups = number("expert_group_count").unwrap_or(1);
    let (class, model_type, method) = match is_v3 {
        true => (DEEPSEEK3_CLASS, "deepseek_v3", "noaux_tc"),
        false if groups > 1 => (DEEPSEEK2_CLASS, "deepseek_v2", "group_limited_greedy"),
        false => (DEEPSEEK2_CLASS, "deepseek_v2", "greedy"),
    };
    let rope_dims = number("rope.dimension_count")?;
    let mut exported = exported
        .class(class, model_type)
        .patterns([moe::ROUTER_BIAS, KV_B_PROJ])
        .patterns(moe::one_by_one())
        // Keys of the latent, which config.json does not have.
        .without(&[key::ATTENTION_HEAD_COUNT_KV, key::ATTENTION_KEY_LENGTH])
        .set("num_key_value_heads", number("attention.head_count")?)
        .set("qk_nope_head_dim", number("attention.key_length_mla")?.checked_sub(rope_dims)?)
        // Null means a query projection of full rank; without the field the class has a default.
        .set("q_lora_rank", number("attention.q_lora_rank"))
        .set("topk_method", method)
        .set("norm_topk_prob", metadata.bool(&key("expert_weights_norm")) == Some(true));
    if let Some(gating) = gating {
        let router = if gating == SIGMOID { "sigmoid" } else { "softmax" };
        exported = exported.set("scoring_func", router);
    }
    if let Some(gguf::Value::F32(tenth)) = metadata.get(&key("rope.scaling.yarn_log_multiplier")) {
        // Multiplied in decimal, where a tenth is exact. `mscale` equals `mscale_all_dim` in all
        // models so far.
        let scale = tenth.to_string().parse::<f64>().ok()? * 10.0;
        let scale = (scale * 1e6).round() / 1e6;
        exported = exported.scaling("mscale", scale).scaling("mscale_all_dim", scale);
    }
    Some(exported)
}

/// Maps `kv_b_proj`, which expands the latent to keys and values per head. The key part is
/// transposed: runtimes apply it to the query (weight absorption).
pub(crate) fn split_kv_b(config: &Config, block: u32) -> Result<Mapping, Error> {
    let MlaDims { rank, nope, value, .. } = MlaDims::of(config)?;
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
    let tensor = |name, steps| MappedTensor {
        name: format!("blk.{block}.{name}.weight"),
        steps,
        slot: None,
    };
    let mut keys = part(0, nope);
    keys.push(Step::Transpose);
    Ok(Mapping::Tensors(vec![tensor("attn_k_b", keys), tensor("attn_v_b", part(nope, value))]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deepseek_v3_defaults_to_the_sigmoid_router() {
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
