//! Conversion of OLMoE.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, defaults, hparams, moe};

const ROUTER: Table = &[("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp")];

pub(crate) struct Olmoe;

/// Description of [`Olmoe`].
pub(crate) static OLMOE: Description = Description {
    classes: &["OlmoeForCausalLM"],
    architecture: "olmoe",
    model_type: "olmoe",
    pre_tokenizers: &["olmo", "dbrx"],
    tensor_names: &[ROUTER, LLAMA_LIKE],
    required_flags: &[("attention_bias", false), ("norm_topk_prob", false)],
    ..Description::DECODER
};

impl Converter for Olmoe {
    fn description(&self) -> &'static Description {
        &OLMOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        config.default("num_experts", 64);
        config.default("num_experts_per_tok", 8);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        if let Some((field, bound)) = config.find(&["clip_qkv"]) {
            return Err(hparams::not_computed(config, field, bound));
        }
        keys.stated(config)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::mapping(config, name, || hparams::feed_forward(config))
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns(moe::one_by_one()))
    }
}
