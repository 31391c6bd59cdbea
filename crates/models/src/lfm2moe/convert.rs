//! Conversion of LFM2 MoE: as LFM2, with experts stacked and a selection bias of the router.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, Mapping, hparams, moe};
use crate::lfm2;
use crate::lfm2::convert::{KERNEL, NAMES, head_counts_kv, with_layer_types};
use crate::schema::key;

/// Matrices of an expert, and their stacked GGUF tensors.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.feed_forward.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.feed_forward.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.feed_forward.experts.{}.w3.weight", "ffn_up_exps"),
];

/// Selection bias of the router.
const ROUTER_BIAS: &str = "model.layers.{}.feed_forward.expert_bias";

/// Value of `expert_gating_func` for a sigmoid router.
const SIGMOID: u32 = 2;

pub(crate) struct Lfm2Moe;

/// Description of [`Lfm2Moe`].
pub(crate) static LFM2_MOE: Description = Description {
    classes: &["Lfm2MoeForCausalLM"],
    architecture: "lfm2moe",
    model_type: "lfm2_moe",
    pre_tokenizers: &["lfm2", "llama-bpe"],
    tensor_names: &[NAMES],
    config_fields: &[
        (key::ATTENTION_LAYER_NORM_RMS_EPSILON, "norm_eps"),
        (key::SHORTCONV_L_CACHE, KERNEL),
        (key::LEADING_DENSE_BLOCK_COUNT, "num_dense_layers"),
    ],
    required_flags: &[("conv_bias", false), ("use_expert_bias", true), ("norm_topk_prob", true)],
    ..Description::DECODER
};

impl Converter for Lfm2Moe {
    fn description(&self) -> &'static Description {
        &LFM2_MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        lfm2::convert::complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&head_counts_kv(config)?[..]));
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(&["moe_intermediate_size"])?);
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["num_dense_layers"])?);
        keys.set(key::EXPERT_GATING_FUNC, SIGMOID);
        keys.vocab_size(config)?;
        keys.set_u32(key::SHORTCONV_L_CACHE, config.u32(&[KERNEL])?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(one) = moe::one_of(&EXPERTS, name, || hparams::expert_count(config))? {
            return Ok(Some(one));
        }
        if let Some(bias) = moe::router_bias(ROUTER_BIAS, name) {
            return Ok(Some(bias));
        }
        Ok(None)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        lfm2::convert::conv1d_steps(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let patterns = EXPERTS.map(|(name, _)| name);
        let exported = exported.patterns(patterns).patterns([ROUTER_BIAS]);
        Some(
            with_layer_types(model, exported)
                .set("use_expert_bias", true)
                .set("norm_topk_prob", true),
        )
    }
}
