//! OLMo with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Family, experts};

const ROUTER: Table = &[("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp")];

pub(super) static OLMOE: Family = Family {
    classes: &["OlmoeForCausalLM"],
    architecture: "olmoe",
    model_type: "olmoe",
    pre_tokenizers: &["olmo", "dbrx"],
    names: &[ROUTER, LLAMA_LIKE],
    expects: &[("attention_bias", false), ("norm_topk_prob", false)],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        config.default("num_experts", 64);
        config.default("num_experts_per_tok", 8);
        hyper::default_attention(config)
    },
    keys,
    special: |config, name| experts::mapping(config, name, || hyper::feed_forward(config)),
    export: |_, exported| Some(exported.patterns(experts::one_by_one())),
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if let Some((field, bound)) = config.find(&["clip_qkv"]) {
        return Err(hyper::not_computed(config, field, bound));
    }
    keys.stated(config)
}
