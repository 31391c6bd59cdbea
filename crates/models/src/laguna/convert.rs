//! Laguna: what attention gives is gated; layers differ in their heads.

use crate::schema::Hyper;
use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;
use serde_json::json;

use crate::convert::export::{count, number};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, export, hparams, moe,
};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.g_proj", "blk.{}.attn_gate"),
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
];

const ROUTER_BIAS: &str = "model.layers.{}.mlp.experts.e_score_correction_bias";

const HEADS: &str = "num_attention_heads_per_layer";

const KINDS: &str = "mlp_layer_types";

const ROPE: &str = "rope_parameters";

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
        let heads = config.find(&[HEADS]).and_then(|(_, heads)| heads.as_array());
        let heads: Vec<i32> = match heads.filter(|heads| !heads.is_empty()) {
            Some(heads) => {
                let number = |heads: &serde_json::Value| heads.as_i64().map(|heads| heads as i32);
                heads.iter().filter_map(number).collect()
            }
            None => {
                let heads = i32::try_from(hparams::head_count(config)?).unwrap_or(i32::MAX);
                vec![heads; hparams::block_count(config)? as usize]
            }
        };
        keys.set(key::ATTENTION_HEAD_COUNT, Array::from(&heads[..]));
        let window = config.u32(&["sliding_window"])?.filter(|&window| window > 0);
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, window);
        let require = |field: &str| config.require_u32(&[field], "a size of the experts");
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, require("moe_intermediate_size")?);
        let shared = require("shared_expert_intermediate_size")?;
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared);
        keys.set(key::EXPERT_WEIGHTS_NORM, true);
        let scale = config.require_f32(&["moe_routed_scaling_factor"], "the weight of experts")?;
        keys.set(key::EXPERT_WEIGHTS_SCALE, scale);
        keys.set(key::EXPERT_GATING_FUNC, SIGMOID);
        let kinds = config.find(&[KINDS]).and_then(|(_, kinds)| kinds.as_array());
        let dense = kinds.into_iter().flatten().take_while(|kind| *kind == "dense").count();
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense as u32);
        let head_dim = f64::from(hparams::head_dim(config)?);
        let rotated = |kind: &str| {
            let share = config.part(ROPE).part(kind).f64(&["partial_rotary_factor"])?;
            Ok::<_, Error>((head_dim * share.unwrap_or(1.0)) as u32)
        };
        keys.set(key::ROPE_DIMENSION_COUNT, rotated("full_attention")?);
        if config.json()[ROPE]["sliding_attention"].is_object() {
            keys.set(key::ROPE_DIMENSION_COUNT_SWA, rotated("sliding_attention")?);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(bias) = moe::router_bias(ROUTER_BIAS, name) {
            return Ok(Some(bias));
        }
        let width = || config.require_u32(moe::WIDTH, "the width of an expert");
        moe::mapping(config, name, width)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        moe::gates_first(tensors)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = Hyper::of(model.metadata()).ok()?;
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let of_layer = |layer| hyper.u64_in(key::ATTENTION_HEAD_COUNT, layer).unwrap_or(0);
        let heads: Vec<u64> = (0..blocks).map(of_layer).collect();
        let dense = count(model, key::LEADING_DENSE_BLOCK_COUNT).unwrap_or(0);
        let kind = |layer| if layer < dense { "dense" } else { "sparse" };
        let head_dim = export::head_dim(model)? as f64;
        let rope = |end: &str| {
            let rotated = number(model, &format!("rope.dimension_count{end}"))?;
            let base = number(model, &format!("rope.freq_base{end}"))?;
            let share = rotated / head_dim;
            Some(
                json!({"rope_type": "default", "rope_theta": base, "partial_rotary_factor": share}),
            )
        };
        let mut parameters = json!({"full_attention": rope("")?});
        for (key, field) in STRETCHED {
            if let Some(value) = number(model, &format!("rope.scaling.{key}")) {
                parameters["full_attention"]["rope_type"] = "yarn".into();
                parameters["full_attention"][field] = export::whole(value);
            }
        }
        if let Some(of_window) = rope("_swa") {
            parameters["sliding_attention"] = of_window;
        }
        // A gate for each head, or for each element.
        let index = model.index();
        let gates =
            index.get("blk.0.attn_gate.weight").and_then(|gate| gate.info.shape.get(1).copied());
        let is_of_head = gates == heads.first().copied();
        Some(
            exported
                .first([ROUTER_BIAS])
                .patterns(moe::one_by_one())
                .without(&[key::ATTENTION_HEAD_COUNT, key::ROPE_FREQ_BASE, key::ROPE_SCALING_TYPE])
                .set("num_attention_heads", heads.iter().copied().max())
                .set(HEADS, heads)
                .set(KINDS, (0..blocks).map(kind).collect::<Vec<_>>())
                .set("gating", if is_of_head { "per-head" } else { "per-element" })
                .set(ROPE, parameters),
        )
    }
}

/// How routers turn scores into weights.
const SIGMOID: u32 = 2;

/// Key under `rope.scaling`, field.
const STRETCHED: [(&str, &str); 5] = [
    ("factor", "factor"),
    ("original_context_length", "original_max_position_embeddings"),
    ("yarn_attn_factor", "attention_factor"),
    ("yarn_beta_fast", "beta_fast"),
    ("yarn_beta_slow", "beta_slow"),
];
