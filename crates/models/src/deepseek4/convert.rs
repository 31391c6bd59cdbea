//! Conversion of `DeepseekV4ForCausalLM`. Checkpoints have the names of DeepSeek's own
//! implementation; configurations of `transformers` are brought to the original fields. Tensors
//! keep the types of the checkpoint and are sorted as llama.cpp's converter writes them.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Step, Tensor};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::draft::signed;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, draft, hparams, moe, rope};
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

/// Checkpoint names without a suffix, and GGUF names.
pub(crate) const PARAMETERS: [(&str, &str); 6] = [
    ("hc_head_fn", "output_hc_fn.weight"),
    ("hc_head_base", "output_hc_base.weight"),
    ("hc_head_scale", "output_hc_scale.weight"),
    ("model.layers.{}.attn.attn_sink", "blk.{}.attn_sinks.weight"),
    ("model.layers.{}.attn.compressor.ape", "blk.{}.attn_compressor_ape.weight"),
    ("model.layers.{}.attn.indexer.compressor.ape", "blk.{}.indexer_compressor_ape.weight"),
];

/// Names of the hyper-connections of each layer.
pub(crate) const HYPER_CONNECTIONS: [(&str, &str); 6] = [
    ("model.layers.{}.hc_attn_fn", "blk.{}.hc_attn_fn.weight"),
    ("model.layers.{}.hc_attn_base", "blk.{}.hc_attn_base.weight"),
    ("model.layers.{}.hc_attn_scale", "blk.{}.hc_attn_scale.weight"),
    ("model.layers.{}.hc_ffn_fn", "blk.{}.hc_ffn_fn.weight"),
    ("model.layers.{}.hc_ffn_base", "blk.{}.hc_ffn_base.weight"),
    ("model.layers.{}.hc_ffn_scale", "blk.{}.hc_ffn_scale.weight"),
];

/// Names of one expert and of the stacked tensor, in the order of llama.cpp's converter.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.ffn.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.ffn.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.ffn.experts.{}.w3.weight", "ffn_up_exps"),
];

/// Table from token ids to experts, of the hash layers.
const TID2EID: &str = "model.layers.{}.ffn.gate.tid2eid";

/// Selection bias of the router.
const ROUTER_BIAS: &str = "model.layers.{}.ffn.gate.bias";

/// Selection bias of the router for image positions.
const VISION_ROUTER_BIAS: &str = "model.layers.{}.ffn.gate.bias_vl";

const COMPRESS_RATIOS: &str = "compress_ratios";

pub(crate) const HASH_LAYERS: &str = "num_hash_layers";

const QK_ROPE_HEAD_DIM: &str = "qk_rope_head_dim";

const SWIGLU_LIMIT: &str = "swiglu_limit";

const NORM_TOPK_PROB: &str = "norm_topk_prob";

const COMPRESS_ROPE_THETA: &str = "compress_rope_theta";

/// Keys and fields with the same value, in the order of llama.cpp's converter: before the
/// activation clamps.
const SIZE_FIELDS: [(&str, &str); 5] = [
    ("rope.dimension_count", QK_ROPE_HEAD_DIM),
    ("attention.q_lora_rank", "q_lora_rank"),
    ("attention.sliding_window", "sliding_window"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_shared_count", "n_shared_experts"),
];

/// Keys and fields of the output projection, after the keys of the indexer.
const OUTPUT_FIELDS: [(&str, &str); 2] =
    [("attention.output_group_count", "o_groups"), ("attention.output_lora_rank", "o_lora_rank")];

/// Keys and fields of the hyper-connections.
const HYPER_CONNECTION_FIELDS: [(&str, &str); 2] = [
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
        SIZE_FIELDS[0],
        SIZE_FIELDS[1],
        SIZE_FIELDS[4],
        OUTPUT_FIELDS[0],
        OUTPUT_FIELDS[1],
        HYPER_CONNECTION_FIELDS[0],
        HYPER_CONNECTION_FIELDS[1],
        (key::EXPERT_COUNT, "n_routed_experts"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::EXPERT_WEIGHTS_NORM, NORM_TOPK_PROB),
        (key::ATTENTION_INDEXER_HEAD_COUNT, "index_n_heads"),
        (key::ATTENTION_INDEXER_KEY_LENGTH, "index_head_dim"),
        (key::ATTENTION_INDEXER_TOP_K, "index_topk"),
        (key::ATTENTION_COMPRESS_ROPE_FREQ_BASE, COMPRESS_ROPE_THETA),
        (key::HYPER_CONNECTION_EPSILON, "hc_eps"),
        (key::HASH_LAYER_COUNT, HASH_LAYERS),
    ],
    ..Description::DECODER
};

impl Converter for Deepseek4 {
    fn description(&self) -> &'static Description {
        &DEEPSEEK4
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config)?;
        compress_ratios(config)?;
        hash_layers(config).map(drop)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys_with_ratios(config, keys, &compress_ratios(config)?, hash_layers(config)?)?;
        let streams = config.require_u32(
            &[HYPER_CONNECTION_FIELDS[0].1],
            "the number of hyper-connection streams",
        )?;
        keys.set(key::EMBEDDING_LENGTH_OUT, hparams::width(config)?.saturating_mul(streams));
        Ok(())
    }

    // Multi-token prediction layers and the vision encoder.
    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        ["mtp.", "aligner.", "image_"].iter().any(|of| name.starts_with(of))
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_layer_tensor(config, name)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        tensors.sort_by_key(converter_position)
    }

    fn keeps_types(&self) -> bool {
        true
    }

    fn chat_template_first(&self) -> bool {
        true
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = export(model, exported)?;
        let compress_ratios = draft::numbers(model, key::ATTENTION_COMPRESS_RATIOS)?;
        Some(exported.set(COMPRESS_RATIOS, compress_ratios))
    }
}

pub(crate) fn complete(config: &mut Config) -> Result<(), Error> {
    for (field, value) in [
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
        config.default(field, value);
    }
    config.default("rms_norm_eps", 1e-6);
    config.default("scoring_func", "sqrtsoftplus");
    config.default("routed_scaling_factor", 1.5);
    config.default(NORM_TOPK_PROB, true);
    config.default("hc_eps", 1e-6);
    config.default(SWIGLU_LIMIT, 10.0);
    complete_rope(config)?;
    complete_layer_types(config)
}

/// Sets the RoPE fields from `rope_parameters` of `transformers`, which has one entry for layers
/// without compression and one for layers with it.
fn complete_rope(config: &mut Config) -> Result<(), Error> {
    const PARTS: &str = "rope_parameters";
    let parts = config.part(PARTS);
    let [main, mut compress] = ["main", "compress"].map(|part| parts.part(part));
    if main.find(&["rope_theta"]).is_some() {
        let base = |of: &Config| of.find(&["rope_theta"]).map(|(_, base)| base.clone());
        config.set("rope_theta", base(&main));
        config.set(COMPRESS_ROPE_THETA, base(&compress));
        config.set(PARTS, Value::Null);
        if compress.json()["rope_type"] == "yarn" {
            for field in ["rope_theta", "partial_rotary_factor", "attention_factor"] {
                compress.set(field, Value::Null);
            }
            config.default("rope_scaling", compress.json().clone());
        }
    }
    config.default(COMPRESS_ROPE_THETA, 160_000.0);
    config.default("rope_theta", 10_000.0);
    if config.find(&[QK_ROPE_HEAD_DIM]).is_none() {
        let rope_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 64.0 / 512.0)?;
        config.set(QK_ROPE_HEAD_DIM, rope_dims);
    }
    Ok(())
}

/// Sets the compression ratios and the hash layers from the layer types of `transformers`.
fn complete_layer_types(config: &mut Config) -> Result<(), Error> {
    const LAYER_TYPES: &str = "layer_types";
    const MLP_LAYER_TYPES: &str = "mlp_layer_types";
    let list = |config: &Config, field: &str| {
        let (_, list) = config.find(&[field])?;
        list.as_array().cloned()
    };
    if let (None, Some(types)) = (config.find(&[COMPRESS_RATIOS]), list(config, LAYER_TYPES)) {
        let rates = config.part("compress_rates");
        let ratio = |name: &Value| match name.as_str() {
            Some("sliding_attention") => Ok(0),
            Some(name @ "compressed_sparse_attention") => Ok(rates.u32(&[name])?.unwrap_or(4)),
            Some(name @ "heavily_compressed_attention") => Ok(rates.u32(&[name])?.unwrap_or(128)),
            _ => Err(hparams::not_computed(config, LAYER_TYPES, name)),
        };
        let compress_ratios = types.iter().map(ratio).collect::<Result<Vec<u32>, Error>>()?;
        config.set(COMPRESS_RATIOS, compress_ratios);
    }
    if let (None, Some(types)) = (config.find(&[HASH_LAYERS]), list(config, MLP_LAYER_TYPES)) {
        let hash_layers = types.iter().take_while(|name| *name == "hash_moe").count();
        if types[hash_layers..].iter().any(|name| name != "moe") {
            return Err(hparams::not_computed(config, MLP_LAYER_TYPES, Value::from(types)));
        }
        config.set(HASH_LAYERS, hash_layers);
    }
    Ok(())
}

/// Returns the compression ratio of each layer: tokens per block, 0 without compression.
pub(crate) fn compress_ratios(config: &Config) -> Result<Vec<i32>, Error> {
    let missing = || config.missing(COMPRESS_RATIOS, "the compression ratio of each layer");
    let compress_ratios = config.u32s(COMPRESS_RATIOS)?.ok_or_else(missing)?;
    if let Some(other) = compress_ratios.iter().find(|ratio| ![0, 4, 128].contains(*ratio)) {
        return Err(hparams::not_computed(config, COMPRESS_RATIOS, format!("{other} in a layer")));
    }
    let blocks = hparams::block_count(config)?;
    match compress_ratios.len() < blocks as usize {
        false => Ok(compress_ratios.into_iter().map(signed).collect()),
        true => Err(config.wrong(
            COMPRESS_RATIOS,
            &compress_ratios.into(),
            &format!("a number for each of {blocks} layers"),
        )),
    }
}

/// Returns the number of leading layers that select experts by token id.
fn hash_layers(config: &Config) -> Result<u32, Error> {
    config
        .u32(&[HASH_LAYERS])?
        .ok_or_else(|| config.missing(HASH_LAYERS, "the number of hash layers"))
}

pub(crate) fn keys_with_ratios(
    config: &Config,
    keys: &mut Keys,
    compress_ratios: &[i32],
    hash_layers: u32,
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
    set(keys, &SIZE_FIELDS)?;
    let scale =
        config.require_f32(&["routed_scaling_factor"], "the scale of the expert weights")?;
    keys.set(key::EXPERT_WEIGHTS_SCALE, scale);
    keys.set(key::EXPERT_WEIGHTS_NORM, config.bool(NORM_TOPK_PROB)?.unwrap_or(true));
    let limit = config.require_f32(&[SWIGLU_LIMIT], "the clamp of the gated activation")?;
    let limits = vec![limit; hparams::block_count(config)? as usize];
    keys.set(key::SWIGLU_CLAMP_EXP, Array::from(&limits[..]));
    keys.set(key::SWIGLU_CLAMP_SHEXP, Array::from(&limits[..]));
    deepseek32::convert::indexer_keys(config, keys)?;
    set(keys, &OUTPUT_FIELDS)?;
    keys.set(key::ATTENTION_COMPRESS_RATIOS, Array::from(compress_ratios));
    let base = config.require_f32(
        &[COMPRESS_ROPE_THETA],
        "the RoPE base frequency of layers with compression",
    )?;
    keys.set(key::ATTENTION_COMPRESS_ROPE_FREQ_BASE, base);
    set(keys, &HYPER_CONNECTION_FIELDS)?;
    let epsilon = config.require_f32(&["hc_eps"], "the epsilon of the hyper-connections")?;
    keys.set(key::HYPER_CONNECTION_EPSILON, epsilon);
    keys.set(key::HASH_LAYER_COUNT, hash_layers);
    Ok(())
}

pub(crate) fn map_layer_tensor(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let parameter = |names: &[_]| hy_v4::convert::map_parameter(names, name);
    if let Some(mapping) = parameter(&PARAMETERS).or_else(|| parameter(&HYPER_CONNECTIONS)) {
        return Ok(Some(mapping));
    }
    let block_of = |pattern| match captures(pattern, name).as_deref() {
        Some(&[block]) => Some(block),
        _ => None,
    };
    let is_hash_layer =
        |block| Ok::<_, Error>(config.u32(&[HASH_LAYERS])?.is_some_and(|end| block < end));
    if let Some(block) = block_of(TID2EID) {
        return Ok(Some(match is_hash_layer(block)? {
            true => Mapping::one(format!("blk.{block}.ffn_gate_tid2eid.weight"), [Step::Whole]),
            false => Mapping::Unknown,
        }));
    }
    if let Some(block) = block_of(ROUTER_BIAS) {
        // Hash layers select experts by token id, so that the selection bias has no effect.
        return Ok(Some(match is_hash_layer(block)? {
            true => Mapping::Dropped,
            false => Mapping::one(format!("blk.{block}.exp_probs_b.bias"), []),
        }));
    }
    if let Some(block) = block_of(VISION_ROUTER_BIAS) {
        return Ok(Some(Mapping::one(format!("blk.{block}.exp_probs_b_vl.bias"), [])));
    }
    moe::one_of(&EXPERTS, name, || hparams::expert_count(config))
}

/// Returns the position of a tensor in the output of llama.cpp's converter: hash tables, experts by
/// layer, then all others in the order of the checkpoint.
fn converter_position(tensor: &Tensor) -> (usize, u32, usize) {
    let block_of = |part: &str| match captures(&format!("blk.{{}}.{part}.weight"), &tensor.name) {
        Some(numbers) => numbers.first().copied(),
        None => None,
    };
    if let Some(block) = block_of("ffn_gate_tid2eid") {
        return (0, block, 0);
    }
    let mut parts = EXPERTS.iter().enumerate();
    let expert_position =
        parts.find_map(|(part, (_, gguf_name))| Some((1, block_of(gguf_name)?, part)));
    expert_position.unwrap_or((2, 0, 0))
}

pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let architecture = model.metadata().architecture()?;
    let limits = model.metadata().array(&format!("{architecture}.swiglu_clamp_exp"));
    let experts = EXPERTS.map(|(name, _)| name);
    let mut exported = exported
        .patterns(PARAMETERS.map(|(name, _)| name))
        .patterns(HYPER_CONNECTIONS.map(|(name, _)| name))
        .patterns(experts)
        .patterns([TID2EID, ROUTER_BIAS, VISION_ROUTER_BIAS])
        .set("scoring_func", "sqrtsoftplus")
        .set_some(SWIGLU_LIMIT, limits.and_then(|limits| limits.iter().next()?.to_f64()));
    for pattern in &mut exported.patterns {
        if let Some(bare) = pattern.strip_prefix("model.") {
            *pattern = bare.to_owned();
        }
    }
    Some(exported)
}
