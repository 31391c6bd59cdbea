//! Conversion of `AfmoeForCausalLM`. The sliding-window pattern is written only if it differs from
//! the default of one full-attention layer in four; the score correction of the router becomes
//! `exp_probs_b`.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, VocabularyKind, defaults, export,
    hparams, moe, rope, sliding_window,
};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate"),
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.mlp.router.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp"),
];

const ROUTER_BIAS: &str = "model.layers.{}.mlp.expert_bias";

pub(crate) struct Afmoe;

/// Description of [`Afmoe`].
pub(crate) static AFMOE: Description = Description {
    classes: &["AfmoeForCausalLM"],
    architecture: "afmoe",
    model_type: "afmoe",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["afmoe"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_SHARED_COUNT, "num_shared_experts"),
        (key::LEADING_DENSE_BLOCK_COUNT, "num_dense_layers"),
        (key::EXPERT_WEIGHTS_NORM, "route_norm"),
        (key::EXPERT_WEIGHTS_SCALE, "route_scale"),
        (key::EXPERT_GROUP_COUNT, "n_group"),
        (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
    ],
    required_flags: &[("mup_enabled", true), ("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Afmoe {
    fn description(&self) -> &'static Description {
        &AFMOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 128);
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, hparams::stated_head_dim(config)?)?;
        keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["num_shared_experts"])?);
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["num_dense_layers"])?);
        if let Some(norm) = config.bool("route_norm")? {
            keys.set(key::EXPERT_WEIGHTS_NORM, norm);
        }
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["route_scale"])?);
        if let Some(window) = config.u32(&["sliding_window"])? {
            keys.set(key::ATTENTION_SLIDING_WINDOW, window);
            sliding_window::unusual_pattern(keys, config, 4)?;
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name, ROUTER_BIAS)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        moe::gates_first(tensors)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let function = match export::count(model, key::EXPERT_GATING_FUNC) {
            Some(2) => Some("sigmoid"),
            Some(1) => Some("softmax"),
            _ => None,
        };
        let exported = exported
            .patterns([ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .set("mup_enabled", true)
            .set_some("score_func", function);
        Some(sliding_window::export_of_pattern(model, exported))
    }
}
