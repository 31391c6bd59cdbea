//! Conversion of Hunyuan 4: DeepSeek's MLA and indexer, and parameters of hyper-connections without
//! a `.weight` suffix. MTP layers are dropped.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{Converter, Description, Exported, Mapping, hparams, moe};
use crate::deepseek2::convert::MLA_NAMES;
use crate::deepseek32::convert::INDEXER;
use crate::glm_dsa::convert::INDEXER_TYPES;
use crate::schema::key;
use crate::{deepseek2, deepseek32};

const NAMES: Table = &[("model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate")];

/// Parameters without a `.weight` suffix, and their GGUF names.
const PARAMETERS: [(&str, &str); 10] = [
    ("model.layers.{}.self_attn.learnable_sink_param", "blk.{}.attn_sinks.weight"),
    ("model.layers.{}.hc_attn_layer.hc_pre.hc_fn", "blk.{}.hc_attn_fn.weight"),
    ("model.layers.{}.hc_attn_layer.hc_pre.hc_base", "blk.{}.hc_attn_base.weight"),
    ("model.layers.{}.hc_attn_layer.hc_pre.hc_scale", "blk.{}.hc_attn_scale.weight"),
    ("model.layers.{}.hc_mlp_layer.hc_pre.hc_fn", "blk.{}.hc_ffn_fn.weight"),
    ("model.layers.{}.hc_mlp_layer.hc_pre.hc_base", "blk.{}.hc_ffn_base.weight"),
    ("model.layers.{}.hc_mlp_layer.hc_pre.hc_scale", "blk.{}.hc_ffn_scale.weight"),
    ("model.hc_head.hc_head_fn", "output_hc_fn.weight"),
    ("model.hc_head.hc_head_base", "output_hc_base.weight"),
    ("model.hc_head.hc_head_scale", "output_hc_scale.weight"),
];

/// Keys and fields of hyper-connections.
const HYPER_CONNECTIONS: [(&str, &str); 2] =
    [("hyper_connection.epsilon", "hc_eps"), ("hyper_connection.magnitude", "hc_magnitude")];

/// Field with the number of residual streams.
const STREAM_COUNT: &str = "hc_mult";

/// Field with the clamp of SwiGLU gates.
const LIMIT: &str = "swiglu_limit";

/// Field with the attention kind of each layer.
const LAYER_TYPES: &str = "layer_types";

/// Value of `expert_gating_func` for a sigmoid router.
const SIGMOID: u32 = 2;

pub(crate) struct HyV4;

/// Description of [`HyV4`].
pub(crate) static HY_V4: Description = Description {
    classes: &["HYV4ForCausalLM"],
    architecture: "hy_v4",
    model_type: "hy_v4",
    pre_tokenizers: &["hy_v4", "hunyuan"],
    tensor_names: &[NAMES, MLA_NAMES, INDEXER, moe::BESIDE_SHARED, LLAMA_LIKE],
    ..deepseek2::convert::DEEPSEEK2
};

impl Converter for HyV4 {
    fn description(&self) -> &'static Description {
        &HY_V4
    }

    fn base(&self) -> &'static dyn Converter {
        &deepseek2::convert::Deepseek2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        deepseek2::convert::complete_v3(config)?;
        config.set("num_key_value_heads", hparams::head_count(config)?);
        for field in ["n_group", "topk_group"] {
            if config.u32(&[field])? == Some(1) {
                config.set(field, Value::Null);
            }
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::mla_keys(config, keys)?;
        keys.set(key::EXPERT_GATING_FUNC, SIGMOID);
        let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)? as usize;
        if let Some(limit) = config.f32(&[LIMIT])?.filter(|&limit| limit > 0.0) {
            keys.set(key::SWIGLU_CLAMP_EXP, Array::from(&vec![limit; blocks][..]));
        }
        let streams = config.require_u32(&[STREAM_COUNT], "the number of residual streams")?;
        keys.set(key::HYPER_CONNECTION_COUNT, streams);
        for (key, field) in HYPER_CONNECTIONS {
            keys.set(key, config.require_f32(&[field], "a parameter of hyper-connections")?);
        }
        if let Some(mut has_indexer) = layers_with_indexer(config) {
            deepseek32::convert::indexer_keys(config, keys)?;
            has_indexer.truncate(blocks);
            keys.set(key::ATTENTION_INDEXER_TYPES, Array::from(&has_indexer[..]));
        }
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name.starts_with("model.mtp_layers.")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        match map_parameter(&PARAMETERS, name) {
            Some(mapping) => Ok(Some(mapping)),
            None => deepseek2::convert::map_mla_tensor(config, name),
        }
    }

    fn keeps_f32(&self, config: &Config, name: &str) -> bool {
        name == "output.weight" && config.json()["enable_lm_head_fp32"] == true
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let (class, model_type) = (exported.class, exported.model_type);
        let mut exported = deepseek2::convert::export_mla(model, exported)?
            .class(class, model_type)
            .patterns(PARAMETERS.map(|(name, _)| name))
            .set(STREAM_COUNT, count(model, key::HYPER_CONNECTION_COUNT)?);
        for (key, field) in HYPER_CONNECTIONS {
            exported = exported.set(field, number(model, key)?);
        }
        let metadata = model.metadata();
        let limits = metadata.array("hy_v4.swiglu_clamp_exp");
        let limit = limits.and_then(|limits| limits.iter().next()?.to_f64());
        exported = exported.set_some(LIMIT, limit);
        if let Some(flags) = metadata.array("hy_v4.attention.indexer.types") {
            let kind =
                |full: gguf::Value| if full.to_bool() == Some(true) { "full" } else { "shared" };
            exported = exported.set(INDEXER_TYPES, flags.iter().map(kind).collect::<Vec<_>>());
        }
        Some(exported)
    }
}

/// Returns for each layer whether it has an indexer; `None` if no layer has one.
fn layers_with_indexer(config: &Config) -> Option<Vec<bool>> {
    let list = |field| config.find(&[field]).and_then(|(_, kinds)| kinds.as_array());
    if let Some(kinds) = list(INDEXER_TYPES) {
        return Some(kinds.iter().map(|kind| kind == "full").collect());
    }
    let is_sparse =
        |kind: &Value| kind == "sparse_attention" || kind == "deepseek_sparse_attention";
    let sparse: Vec<bool> = list(LAYER_TYPES)?.iter().map(is_sparse).collect();
    sparse.contains(&true).then_some(sparse)
}

/// Maps a parameter by a table of Hugging Face names without a suffix and GGUF names. The
/// checkpoint may name it with the suffix `.weight`.
pub(crate) fn map_parameter(table: &[(&str, &str)], name: &str) -> Option<Mapping> {
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    table.iter().find_map(|(hf_name, gguf_name)| {
        Some(Mapping::one(filled(gguf_name, &captures(hf_name, stem)?), []))
    })
}
