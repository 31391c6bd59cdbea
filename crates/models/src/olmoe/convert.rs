//! OLMo with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, hparams, moe};

const ROUTER: Table = &[("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp")];

pub(crate) struct Olmoe;

impl Converter for Olmoe {
    fn classes(&self) -> &'static [&'static str] {
        &["OlmoeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "olmoe"
    }

    fn model_type(&self) -> &'static str {
        "olmoe"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["olmo", "dbrx"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[ROUTER, LLAMA_LIKE]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", false), ("norm_topk_prob", false)]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        config.default("num_experts", 64);
        config.default("num_experts_per_tok", 8);
        hparams::default_attention(config)
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
