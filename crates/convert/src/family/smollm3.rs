//! SmolLM3: as llama, but some layers do not rotate.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::hyper::{self, Keys};
use super::{Family, windows};
use crate::vocab;

pub(super) static SMOLLM3: Family = Family {
    classes: &["SmolLM3ForCausalLM"],
    architecture: "smollm3",
    model_type: "smollm3",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["smaug-bpe", "llama-bpe"],
    expects: &[("attention_bias", false), ("mlp_bias", false)],
    complete,
    keys,
    steps: hyper::llama_order,
    export: |model, exported| Some(windows::export_of_qwen(model, exported)),
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
    rotates_as_programs_do(config)?;
    // Those that do not rotate.
    windows::qwen(keys, config, |layer, _| layer % 4 == 3)
}

/// Fails unless of four layers the last does not rotate: programs know this of the architecture.
fn rotates_as_programs_do(config: &Config) -> Result<(), Error> {
    const STEP: usize = 4;
    if let Some((field, rotates)) = config.find(&["no_rope_layers"]) {
        let flags = rotates.as_array().into_iter().flatten().map(|flag| flag.as_u64());
        let as_usual = |(i, flag)| flag == Some(u64::from((i + 1) % STEP != 0));
        if !flags.enumerate().all(as_usual) {
            return Err(hyper::not_computed(config, field, rotates));
        }
        return Ok(());
    }
    match config.u32(&["no_rope_layer_interval"])? {
        Some(step) if step as usize != STEP => {
            Err(hyper::not_computed(config, "no_rope_layer_interval", step))
        }
        _ => Ok(()),
    }
}
