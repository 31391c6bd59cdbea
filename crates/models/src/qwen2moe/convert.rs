//! Conversion of Qwen2-MoE. `expert_weights_norm` is written only if it differs from the default of
//! runtimes.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::has;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, defaults, moe, sliding_window};
use crate::schema::{HyperParameters, key};

/// Names of the router and the shared expert, which only Qwen2-MoE has.
pub(crate) const EXPERT_NAMES: Table = &[
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp"),
    ("model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
];

pub(crate) const MOE_FIELDS: &[(&str, &str)] =
    &[("expert_shared_feed_forward_length", "shared_expert_intermediate_size")];

const WEIGHTS_NORM: &str = "expert_weights_norm";

pub(crate) struct Qwen2moe;

/// Description of [`Qwen2moe`].
pub(crate) static QWEN2MOE: Description = Description {
    classes: &["Qwen2MoeForCausalLM"],
    architecture: "qwen2moe",
    model_type: "qwen2_moe",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    config_fields: MOE_FIELDS,
    ..Description::DECODER
};

impl Converter for Qwen2moe {
    fn description(&self) -> &'static Description {
        &QWEN2MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("shared_expert_intermediate_size", 5632);
        complete_moe_config(config, 1408, 4)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        moe_keys(config, keys, false)?;
        sliding_window::qwen(keys, config, |layer, count| layer % 2 == 0 && layer < count)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::mapping(config, name, || moe::width(config))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let has_bias = has(model, "blk.0.attn_q.bias");
        Some(export_moe(model, exported, false).set("qkv_bias", has_bias))
    }
}

/// Sets the defaults of MoE fields.
pub(crate) fn complete_moe_config(
    config: &mut Config,
    expert_width: u32,
    experts_per_token: u32,
) -> Result<(), Error> {
    config.default(moe::WIDTH[0], expert_width);
    config.default("num_experts_per_tok", experts_per_token);
    config.default("rms_norm_eps", 1e-6);
    defaults::attention(config)
}

/// Writes the keys of MoE models. Runtimes renormalize router weights of files without `expert_weights_norm` if
/// `normalizes_by_default` is set.
pub(crate) fn moe_keys(
    config: &Config,
    keys: &mut Keys,
    normalizes_by_default: bool,
) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
    let shared = config.u32(&["shared_expert_intermediate_size"])?;
    keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared);
    // The default of both classes is false.
    let normalizes = config.bool("norm_topk_prob")?.unwrap_or(false);
    if normalizes != normalizes_by_default {
        keys.set(WEIGHTS_NORM, normalizes);
    }
    Ok(())
}

/// Completes the description of an export of an MoE model.
pub(crate) fn export_moe(
    model: &Model,
    exported: Exported,
    normalizes_by_default: bool,
) -> Exported {
    let stated = HyperParameters::from_metadata(model.metadata())
        .ok()
        .and_then(|hyper| hyper.value(WEIGHTS_NORM)?.to_bool());
    let exported = exported.patterns(moe::one_by_one());
    sliding_window::export_of_qwen(model, exported)
        .set("norm_topk_prob", stated.unwrap_or(normalizes_by_default))
}
