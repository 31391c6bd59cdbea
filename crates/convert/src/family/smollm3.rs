//! SmolLM3: as llama, but some blocks do not rotate.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::Family;
use super::hyper::{self, Keys};
use crate::vocab;

pub(super) static SMOLLM3: Family = Family {
    classes: &["SmolLM3ForCausalLM"],
    architecture: "smollm3",
    model_type: "smollm3",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["smaug-bpe", "llama-bpe"],
    complete,
    keys,
    steps: hyper::llama_order,
    computed: hyper::rope_freqs,
    ..Family::DEFAULT
};

fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("rope_theta", 2e6);
    Ok(())
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.decoder(config, hyper::stated_head_dim(config)?)?;
    keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
    keys.set("rope.dimension_count", hyper::head_dim(config)?);
    Ok(())
}
