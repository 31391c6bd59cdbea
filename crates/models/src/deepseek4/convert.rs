//! DeepSeek 4: attention to tokens that were compressed several into one, several streams of the residual, and first
//! layers that choose experts by the token. DSpark is its draft, of the same layers.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Step, Tensor};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::draft::signed;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, draft, hparams, moe};
use crate::schema::key;
use crate::{deepseek32, hy_v4};

pub(crate) const NAMES: Table = &[
    ("embed", "token_embd"),
    ("model.norm", "output_norm"),
    ("head", "output"),
    ("model.layers.{}.attn_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("model.layers.{}.attn.wq_a", "blk.{}.attn_q_a"),
    ("model.layers.{}.attn.q_norm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.attn.wq_b", "blk.{}.attn_q_b"),
    ("model.layers.{}.attn.wkv", "blk.{}.attn_kv"),
    ("model.layers.{}.attn.kv_norm", "blk.{}.attn_kv_a_norm"),
    ("model.layers.{}.attn.wo_a", "blk.{}.attn_output_a"),
    ("model.layers.{}.attn.wo_b", "blk.{}.attn_output_b"),
    ("model.layers.{}.attn.compressor.wkv", "blk.{}.attn_compressor_kv"),
    ("model.layers.{}.attn.compressor.wgate", "blk.{}.attn_compressor_gate"),
    ("model.layers.{}.attn.compressor.norm", "blk.{}.attn_compressor_norm"),
    ("model.layers.{}.attn.indexer.wq_b", "blk.{}.indexer.attn_q_b"),
    ("model.layers.{}.attn.indexer.weights_proj", "blk.{}.indexer.proj"),
    ("model.layers.{}.attn.indexer.compressor.wkv", "blk.{}.indexer_compressor_kv"),
    ("model.layers.{}.attn.indexer.compressor.wgate", "blk.{}.indexer_compressor_gate"),
    ("model.layers.{}.attn.indexer.compressor.norm", "blk.{}.indexer_compressor_norm"),
    ("model.layers.{}.ffn.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.ffn.shared_experts.w1", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.ffn.shared_experts.w2", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.ffn.shared_experts.w3", "blk.{}.ffn_up_shexp"),
];

/// Names without an end, and ours.
pub(crate) const PARAMETERS: [(&str, &str); 6] = [
    ("hc_head_fn", "output_hc_fn.weight"),
    ("hc_head_base", "output_hc_base.weight"),
    ("hc_head_scale", "output_hc_scale.weight"),
    ("model.layers.{}.attn.attn_sink", "blk.{}.attn_sinks.weight"),
    ("model.layers.{}.attn.compressor.ape", "blk.{}.attn_compressor_ape.weight"),
    ("model.layers.{}.attn.indexer.compressor.ape", "blk.{}.indexer_compressor_ape.weight"),
];

/// The same of what mixes streams in each layer.
pub(crate) const MIXES: [(&str, &str); 6] = [
    ("model.layers.{}.hc_attn_fn", "blk.{}.hc_attn_fn.weight"),
    ("model.layers.{}.hc_attn_base", "blk.{}.hc_attn_base.weight"),
    ("model.layers.{}.hc_attn_scale", "blk.{}.hc_attn_scale.weight"),
    ("model.layers.{}.hc_ffn_fn", "blk.{}.hc_ffn_fn.weight"),
    ("model.layers.{}.hc_ffn_base", "blk.{}.hc_ffn_base.weight"),
    ("model.layers.{}.hc_ffn_scale", "blk.{}.hc_ffn_scale.weight"),
];

/// Of each expert; and of all, in the order in which llama.cpp's converter writes them.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.ffn.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.ffn.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.ffn.experts.{}.w3.weight", "ffn_up_exps"),
];

/// Which experts a token chooses, of the first layers.
const BY_TOKEN: &str = "model.layers.{}.ffn.gate.tid2eid";

/// What is added to scores only to choose experts; and the same for parts of images.
const BIAS: &str = "model.layers.{}.ffn.gate.bias";

const BIAS_OF_IMAGES: &str = "model.layers.{}.ffn.gate.bias_vl";

const RATIOS: &str = "compress_ratios";

pub(crate) const HASHED: &str = "num_hash_layers";

const ROTATED: &str = "qk_rope_head_dim";

const LIMIT: &str = "swiglu_limit";

const NORMALIZED: &str = "norm_topk_prob";

const COMPRESSED_BASE: &str = "compress_rope_theta";

/// Keys that hold a number of the configuration as it is, in the order of llama.cpp's converter: all that stand
/// before those of the activation, then those behind the indexer's.
const FIRST: [(&str, &str); 5] = [
    ("rope.dimension_count", ROTATED),
    ("attention.q_lora_rank", "q_lora_rank"),
    ("attention.sliding_window", "sliding_window"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_shared_count", "n_shared_experts"),
];

const OUTPUT: [(&str, &str); 2] =
    [("attention.output_group_count", "o_groups"), ("attention.output_lora_rank", "o_lora_rank")];

const STREAMS: [(&str, &str); 2] = [
    ("hyper_connection.count", "hc_mult"),
    ("hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"),
];

pub(crate) struct Deepseek4;

/// Description of [`Deepseek4`].
pub(crate) static DEEPSEEK4: Description = Description {
    classes: &["DeepseekV4ForCausalLM"],
    architecture: "deepseek4",
    model_type: "deepseek_v4",
    pre_tokenizers: &["deepseek-v3"],
    tensor_names: &[NAMES],
    config_fields: &[
        FIRST[0],
        FIRST[1],
        FIRST[4],
        OUTPUT[0],
        OUTPUT[1],
        STREAMS[0],
        STREAMS[1],
        (key::EXPERT_COUNT, "n_routed_experts"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::EXPERT_WEIGHTS_NORM, NORMALIZED),
        (key::ATTENTION_INDEXER_HEAD_COUNT, "index_n_heads"),
        (key::ATTENTION_INDEXER_KEY_LENGTH, "index_head_dim"),
        (key::ATTENTION_INDEXER_TOP_K, "index_topk"),
        (key::ATTENTION_COMPRESS_ROPE_FREQ_BASE, COMPRESSED_BASE),
        (key::HYPER_CONNECTION_EPSILON, "hc_eps"),
        (key::HASH_LAYER_COUNT, HASHED),
    ],
    ..Description::DECODER
};

impl Converter for Deepseek4 {
    fn description(&self) -> &'static Description {
        &DEEPSEEK4
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config)?;
        ratios(config)?;
        hashed(config).map(drop)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys_with(config, keys, &ratios(config)?, hashed(config)?)?;
        let streams = config.require_u32(&[STREAMS[0].1], "streams of the residual")?;
        keys.set(key::EMBEDDING_LENGTH_OUT, hparams::width(config)?.saturating_mul(streams));
        Ok(())
    }

    // What guesses further tokens, and what sees.
    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        ["mtp.", "aligner.", "image_"].iter().any(|of| name.starts_with(of))
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special(config, name)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        tensors.sort_by_key(place)
    }

    fn keeps_types(&self) -> bool {
        true
    }

    fn chat_template_first(&self) -> bool {
        true
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = export(model, exported)?;
        let ratios = draft::numbers(model, key::ATTENTION_COMPRESS_RATIOS)?;
        Some(exported.set(RATIOS, ratios))
    }
}

pub(crate) fn complete(config: &mut Config) -> Result<(), Error> {
    for (field, usual) in [
        ("num_key_value_heads", 1),
        ("head_dim", 512),
        ("q_lora_rank", 1024),
        ("moe_intermediate_size", 2048),
        ("num_experts_per_tok", 6),
        ("n_routed_experts", 256),
        ("n_shared_experts", 1),
        ("sliding_window", 128),
        ("o_groups", 8),
        ("o_lora_rank", 1024),
        ("index_n_heads", 64),
        ("index_head_dim", 128),
        ("index_topk", 512),
        ("hc_mult", 4),
        ("hc_sinkhorn_iters", 20),
    ] {
        config.default(field, usual);
    }
    config.default("rms_norm_eps", 1e-6);
    config.default("scoring_func", "sqrtsoftplus");
    config.default("routed_scaling_factor", 1.5);
    config.default(NORMALIZED, true);
    config.default("hc_eps", 1e-6);
    config.default(LIMIT, 10.0);
    complete_rotation(config)?;
    complete_layers(config)
}

/// How positions turn stands in two parts where `transformers` wrote the configuration.
fn complete_rotation(config: &mut Config) -> Result<(), Error> {
    const PARTS: &str = "rope_parameters";
    let parts = config.part(PARTS);
    let [main, mut compress] = ["main", "compress"].map(|part| parts.part(part));
    if main.find(&["rope_theta"]).is_some() {
        let base = |of: &Config| of.find(&["rope_theta"]).map(|(_, base)| base.clone());
        config.set("rope_theta", base(&main));
        config.set(COMPRESSED_BASE, base(&compress));
        config.set(PARTS, Value::Null);
        if compress.json()["rope_type"] == "yarn" {
            for field in ["rope_theta", "partial_rotary_factor", "attention_factor"] {
                compress.set(field, Value::Null);
            }
            config.default("rope_scaling", compress.json().clone());
        }
    }
    config.default(COMPRESSED_BASE, 160_000.0);
    config.default("rope_theta", 10_000.0);
    if config.find(&[ROTATED]).is_none() {
        let rotated = hparams::rotated_dims(config, hparams::head_dim(config)?, 64.0 / 512.0)?;
        config.set(ROTATED, rotated);
    }
    Ok(())
}

/// What each layer is, in the words of newer configurations.
fn complete_layers(config: &mut Config) -> Result<(), Error> {
    const KINDS: &str = "layer_types";
    const NETWORKS: &str = "mlp_layer_types";
    let list = |config: &Config, field: &str| {
        let (_, list) = config.find(&[field])?;
        list.as_array().cloned()
    };
    if let (None, Some(kinds)) = (config.find(&[RATIOS]), list(config, KINDS)) {
        let rates = config.part("compress_rates");
        let ratio = |kind: &Value| match kind.as_str() {
            Some("sliding_attention") => Ok(0),
            Some(kind @ "compressed_sparse_attention") => Ok(rates.u32(&[kind])?.unwrap_or(4)),
            Some(kind @ "heavily_compressed_attention") => Ok(rates.u32(&[kind])?.unwrap_or(128)),
            _ => Err(hparams::not_computed(config, KINDS, kind)),
        };
        let ratios = kinds.iter().map(ratio).collect::<Result<Vec<u32>, Error>>()?;
        config.set(RATIOS, ratios);
    }
    if let (None, Some(kinds)) = (config.find(&[HASHED]), list(config, NETWORKS)) {
        let hashed = kinds.iter().take_while(|kind| *kind == "hash_moe").count();
        if kinds[hashed..].iter().any(|kind| kind != "moe") {
            return Err(hparams::not_computed(config, NETWORKS, Value::from(kinds)));
        }
        config.set(HASHED, hashed);
    }
    Ok(())
}

/// How many tokens each layer makes one of.
pub(crate) fn ratios(config: &Config) -> Result<Vec<i32>, Error> {
    let missing = || config.missing(RATIOS, "how many tokens each layer makes one of");
    let ratios = config.u32s(RATIOS)?.ok_or_else(missing)?;
    if let Some(other) = ratios.iter().find(|ratio| ![0, 4, 128].contains(*ratio)) {
        return Err(hparams::not_computed(config, RATIOS, format!("{other} in a layer")));
    }
    let blocks = hparams::block_count(config)?;
    match ratios.len() < blocks as usize {
        false => Ok(ratios.into_iter().map(signed).collect()),
        true => Err(config.wrong(
            RATIOS,
            &ratios.into(),
            &format!("a number for each of {blocks} layers"),
        )),
    }
}

/// How many of the first layers choose experts by the token.
fn hashed(config: &Config) -> Result<u32, Error> {
    config.u32(&[HASHED])?.ok_or_else(|| config.missing(HASHED, "layers that hash tokens"))
}

pub(crate) fn keys_with(
    config: &Config,
    keys: &mut Keys,
    ratios: &[i32],
    hashed: u32,
) -> Result<(), Error> {
    keys.stated(config)?;
    if config.json()["scoring_func"] != "sqrtsoftplus" {
        return Err(hparams::not_computed(config, "scoring_func", &config.json()["scoring_func"]));
    }
    let set = |keys: &mut Keys, table: &[(&str, &str)]| {
        table.iter().try_for_each(|(key, field)| {
            keys.set(key, config.require_u32(&[field], "a size of the model")?);
            Ok::<_, Error>(())
        })
    };
    set(keys, &FIRST)?;
    let scale = config.require_f32(&["routed_scaling_factor"], "the factor of experts")?;
    keys.set(key::EXPERT_WEIGHTS_SCALE, scale);
    keys.set(key::EXPERT_WEIGHTS_NORM, config.bool(NORMALIZED)?.unwrap_or(true));
    let limit = config.require_f32(&[LIMIT], "the bound of experts' activation")?;
    let limits = vec![limit; hparams::block_count(config)? as usize];
    keys.set(key::SWIGLU_CLAMP_EXP, Array::from(&limits[..]));
    keys.set(key::SWIGLU_CLAMP_SHEXP, Array::from(&limits[..]));
    deepseek32::convert::indexer_keys(config, keys)?;
    set(keys, &OUTPUT)?;
    keys.set(key::ATTENTION_COMPRESS_RATIOS, Array::from(ratios));
    let base = config.require_f32(&[COMPRESSED_BASE], "the base frequency of compressed tokens")?;
    keys.set(key::ATTENTION_COMPRESS_ROPE_FREQ_BASE, base);
    set(keys, &STREAMS)?;
    let epsilon = config.require_f32(&["hc_eps"], "what mixing streams adds")?;
    keys.set(key::HYPER_CONNECTION_EPSILON, epsilon);
    keys.set(key::HASH_LAYER_COUNT, hashed);
    Ok(())
}

pub(crate) fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let parameter = |names: &[_]| hy_v4::convert::map_parameter(names, name);
    if let Some(mapping) = parameter(&PARAMETERS).or_else(|| parameter(&MIXES)) {
        return Ok(Some(mapping));
    }
    let of_block = |pattern| match captures(pattern, name).as_deref() {
        Some(&[block]) => Some(block),
        _ => None,
    };
    let is_hashed = |block| Ok::<_, Error>(config.u32(&[HASHED])?.is_some_and(|end| block < end));
    if let Some(block) = of_block(BY_TOKEN) {
        return Ok(Some(match is_hashed(block)? {
            true => Mapping::one(format!("blk.{block}.ffn_gate_tid2eid.weight"), [Step::Whole]),
            false => Mapping::Unknown,
        }));
    }
    if let Some(block) = of_block(BIAS) {
        // Scores choose nothing where the token does.
        return Ok(Some(match is_hashed(block)? {
            true => Mapping::Dropped,
            false => Mapping::one(format!("blk.{block}.exp_probs_b.bias"), []),
        }));
    }
    if let Some(block) = of_block(BIAS_OF_IMAGES) {
        return Ok(Some(Mapping::one(format!("blk.{block}.exp_probs_b_vl.bias"), [])));
    }
    moe::one_of(&EXPERTS, name, || hparams::expert_count(config))
}

/// Where llama.cpp's converter writes a tensor: tables of tokens, experts layer by layer, then all others as they
/// come.
fn place(tensor: &Tensor) -> (usize, u32, usize) {
    let of_block = |part: &str| match captures(&format!("blk.{{}}.{part}.weight"), &tensor.name) {
        Some(numbers) => numbers.first().copied(),
        None => None,
    };
    if let Some(block) = of_block("ffn_gate_tid2eid") {
        return (0, block, 0);
    }
    let mut parts = EXPERTS.iter().enumerate();
    let of_experts = parts.find_map(|(part, (_, ours))| Some((1, of_block(ours)?, part)));
    of_experts.unwrap_or((2, 0, 0))
}

pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let architecture = model.metadata().architecture()?;
    let limits = model.metadata().array(&format!("{architecture}.swiglu_clamp_exp"));
    let experts = EXPERTS.map(|(name, _)| name);
    let mut exported = exported
        .patterns(PARAMETERS.map(|(name, _)| name))
        .patterns(MIXES.map(|(name, _)| name))
        .patterns(experts)
        .patterns([BY_TOKEN, BIAS, BIAS_OF_IMAGES])
        .set("scoring_func", "sqrtsoftplus")
        .set_some(LIMIT, limits.and_then(|limits| limits.iter().next()?.to_f64()));
    for pattern in &mut exported.patterns {
        if let Some(bare) = pattern.strip_prefix("model.") {
            *pattern = bare.to_owned();
        }
    }
    Some(exported)
}
