//! Qwen2 and Qwen3 with experts.

use crate::schema::Hyper;
use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::has;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, hparams, moe, sliding_window};
use crate::schema::key;

/// What stands beside the experts. Only Qwen2 has one that is always asked.
pub(crate) const EXPERT_NAMES: Table = &[
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp"),
    ("model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
];

pub(crate) const FIELDS: &[(&str, &str)] =
    &[("expert_shared_feed_forward_length", "shared_expert_intermediate_size")];

const WEIGHTS_NORM: &str = "expert_weights_norm";

const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size"];

pub(crate) struct Qwen2moe;

/// Description of [`Qwen2moe`].
pub(crate) static QWEN2MOE: Description = Description {
    classes: &["Qwen2MoeForCausalLM"],
    architecture: "qwen2moe",
    model_type: "qwen2_moe",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    config_fields: FIELDS,
    ..Description::DECODER
};

impl Converter for Qwen2moe {
    fn description(&self) -> &'static Description {
        &QWEN2MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("shared_expert_intermediate_size", 5632);
        complete(config, 1408, 4)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys, false)?;
        sliding_window::qwen(keys, config, |layer, count| layer % 2 == 0 && layer < count)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let has_bias = has(model, "blk.0.attn_q.bias");
        Some(export_of(model, exported, false).set("qkv_bias", has_bias))
    }
}

/// `width` is that of an expert, `asked` how many are used for a token, unless stated.
pub(crate) fn complete(config: &mut Config, width: u32, asked: u32) -> Result<(), Error> {
    config.default(EXPERT_WIDTH[0], width);
    config.default("num_experts_per_tok", asked);
    config.default("rms_norm_eps", 1e-6);
    hparams::default_attention(config)
}

/// `usual` is whether programs make the weights of the experts of a token sum to 1, where no key says it.
pub(crate) fn keys(config: &Config, keys: &mut Keys, usual: bool) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_WIDTH)?);
    let shared = config.u32(&["shared_expert_intermediate_size"])?;
    keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared);
    // What is not stated is false, in both classes.
    let stated = config.bool("norm_topk_prob")?.unwrap_or(false);
    if stated != usual {
        keys.set(WEIGHTS_NORM, stated);
    }
    Ok(())
}

pub(crate) fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let width = || config.require_u32(EXPERT_WIDTH, "the feed-forward width of an expert");
    moe::mapping(config, name, width)
}

pub(crate) fn export_of(model: &Model, exported: Exported, usual: bool) -> Exported {
    let stated = Hyper::of(model.metadata()).ok().and_then(|of| of.stated(WEIGHTS_NORM)?.to_bool());
    let exported = exported.patterns(moe::one_by_one());
    sliding_window::export_of_qwen(model, exported).set("norm_topk_prob", stated.unwrap_or(usual))
}
