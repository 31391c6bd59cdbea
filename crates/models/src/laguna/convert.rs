//! Conversion of Laguna: query heads per layer, RoPE parameters per kind of layer, and a gate of
//! the attention output.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;
use serde_json::json;

use crate::convert::export::{count, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, export, hparams, moe,
};
use crate::schema::{HyperParameters, key};

const NAMES: Table = &[
    ("model.layers.{}.self_attn.g_proj", "blk.{}.attn_gate"),
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
];

/// Selection bias of the router.
const ROUTER_BIAS: &str = "model.layers.{}.mlp.experts.e_score_correction_bias";

/// Field with the number of query heads of each layer.
const HEADS_PER_LAYER: &str = "num_attention_heads_per_layer";

/// Field with the FFN kind of each layer.
const MLP_LAYER_TYPES: &str = "mlp_layer_types";

/// Field with the RoPE parameters of each kind of layer.
const ROPE_PARAMETERS: &str = "rope_parameters";

pub(crate) struct Laguna;

/// Description of [`Laguna`].
pub(crate) static LAGUNA: Description = Description {
    classes: &["LagunaForCausalLM"],
    architecture: "laguna",
    model_type: "laguna",
    vocabulary: VocabularyKind::Laguna,
    pre_tokenizers: &["laguna"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_SHARED_FEED_FORWARD_LENGTH, "shared_expert_intermediate_size"),
        (key::EXPERT_WEIGHTS_SCALE, "moe_routed_scaling_factor"),
    ],
    ..Description::DECODER
};

impl Converter for Laguna {
    fn description(&self) -> &'static Description {
        &LAGUNA
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        let heads = config.find(&[HEADS_PER_LAYER]).and_then(|(_, heads)| heads.as_array());
        let heads: Vec<i32> = match heads.filter(|heads| !heads.is_empty()) {
            Some(heads) => {
                let integer = |heads: &serde_json::Value| heads.as_i64().map(|heads| heads as i32);
                heads.iter().filter_map(integer).collect()
            }
            None => {
                let heads = i32::try_from(hparams::head_count(config)?).unwrap_or(i32::MAX);
                vec![heads; hparams::block_count(config)? as usize]
            }
        };
        keys.set(key::ATTENTION_HEAD_COUNT, Array::from(&heads[..]));
        let window = config.u32(&["sliding_window"])?.filter(|&window| window > 0);
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, window);
        let require = |field: &str| config.require_u32(&[field], "the FFN size of the experts");
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, require("moe_intermediate_size")?);
        let shared = require("shared_expert_intermediate_size")?;
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared);
        keys.set(key::EXPERT_WEIGHTS_NORM, true);
        let scale = config
            .require_f32(&["moe_routed_scaling_factor"], "the scale of the expert weights")?;
        keys.set(key::EXPERT_WEIGHTS_SCALE, scale);
        keys.set(key::EXPERT_GATING_FUNC, SIGMOID);
        let kinds = config.find(&[MLP_LAYER_TYPES]).and_then(|(_, kinds)| kinds.as_array());
        let dense = kinds.into_iter().flatten().take_while(|kind| *kind == "dense").count();
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense as u32);
        let head_dim = f64::from(hparams::head_dim(config)?);
        let rotary_dims = |kind: &str| {
            let factor = config.part(ROPE_PARAMETERS).part(kind).f64(&["partial_rotary_factor"])?;
            Ok::<_, Error>((head_dim * factor.unwrap_or(1.0)) as u32)
        };
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims("full_attention")?);
        if config.json()[ROPE_PARAMETERS]["sliding_attention"].is_object() {
            keys.set(key::ROPE_DIMENSION_COUNT_SWA, rotary_dims("sliding_attention")?);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name, ROUTER_BIAS)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        moe::gates_first(tensors)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let head_count = |layer| hyper.u64_in_layer(key::ATTENTION_HEAD_COUNT, layer).unwrap_or(0);
        let heads: Vec<u64> = (0..blocks).map(head_count).collect();
        let dense = count(model, key::LEADING_DENSE_BLOCK_COUNT).unwrap_or(0);
        let kind = |layer| if layer < dense { "dense" } else { "sparse" };
        let head_dim = export::head_dim(model)? as f64;
        let rope = |suffix: &str| {
            let rotary_dims = number(model, &format!("rope.dimension_count{suffix}"))?;
            let base = number(model, &format!("rope.freq_base{suffix}"))?;
            let factor = rotary_dims / head_dim;
            Some(
                json!({"rope_type": "default", "rope_theta": base, "partial_rotary_factor": factor}),
            )
        };
        let mut parameters = json!({"full_attention": rope("")?});
        for (key, field) in YARN {
            if let Some(value) = number(model, &format!("rope.scaling.{key}")) {
                parameters["full_attention"]["rope_type"] = "yarn".into();
                parameters["full_attention"][field] = export::whole(value);
            }
        }
        if let Some(sliding) = rope("_swa") {
            parameters["sliding_attention"] = sliding;
        }
        // The gate has one row per head or one per element.
        let index = model.index();
        let rows =
            index.get("blk.0.attn_gate.weight").and_then(|gate| gate.info.shape.get(1).copied());
        let is_per_head = rows == heads.first().copied();
        Some(
            exported
                .first([ROUTER_BIAS])
                .patterns(moe::one_by_one())
                .without(&[key::ATTENTION_HEAD_COUNT, key::ROPE_FREQ_BASE, key::ROPE_SCALING_TYPE])
                .set("num_attention_heads", heads.iter().copied().max())
                .set(HEADS_PER_LAYER, heads)
                .set(MLP_LAYER_TYPES, (0..blocks).map(kind).collect::<Vec<_>>())
                .set("gating", if is_per_head { "per-head" } else { "per-element" })
                .set(ROPE_PARAMETERS, parameters),
        )
    }
}

/// Value of `expert_gating_func` for a sigmoid router.
const SIGMOID: u32 = 2;

/// Keys of YaRN under `rope.scaling`, and their config.json fields.
const YARN: [(&str, &str); 5] = [
    ("factor", "factor"),
    ("original_context_length", "original_max_position_embeddings"),
    ("yarn_attn_factor", "attention_factor"),
    ("yarn_beta_fast", "beta_fast"),
    ("yarn_beta_slow", "beta_slow"),
];
