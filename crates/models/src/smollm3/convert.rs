//! Conversion of SmolLM3. Models whose NoPE layers are not the last of each four are refused.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, Exported, VocabularyKind, hparams, sliding_window, steps,
};
use crate::schema::key;

pub(crate) struct Smollm3;

/// Description of [`Smollm3`].
pub(crate) static SMOLLM3: Description = Description {
    classes: &["SmolLM3ForCausalLM"],
    architecture: "smollm3",
    model_type: "smollm3",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["smaug-bpe", "llama-bpe"],
    required_flags: &[("attention_bias", false), ("mlp_bias", false)],
    ..Description::DECODER
};

impl Converter for Smollm3 {
    fn description(&self) -> &'static Description {
        &SMOLLM3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rope_theta", 2e6);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.decoder(config, hparams::stated_head_dim(config)?)?;
        keys.set(key::VOCAB_SIZE, config.require_u32(&["vocab_size"], "the number of tokens")?);
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        require_nope_layers(config)?;
        // The sliding window applies to NoPE layers.
        sliding_window::qwen(keys, config, |layer, _| layer % 4 == 3)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(sliding_window::export_of_qwen(model, exported))
    }
}

/// Fails unless the NoPE layers are the last of each four, which runtimes hard-code.
fn require_nope_layers(config: &Config) -> Result<(), Error> {
    const INTERVAL: usize = 4;
    if let Some((field, has_rope)) = config.find(&["no_rope_layers"]) {
        let flags = has_rope.as_array().into_iter().flatten().map(|flag| flag.as_u64());
        let is_expected = |(i, flag)| flag == Some(u64::from((i + 1) % INTERVAL != 0));
        if !flags.enumerate().all(is_expected) {
            return Err(hparams::not_computed(config, field, has_rope));
        }
        return Ok(());
    }
    match config.u32(&["no_rope_layer_interval"])? {
        Some(interval) if interval as usize != INTERVAL => {
            Err(hparams::not_computed(config, "no_rope_layer_interval", interval))
        }
        _ => Ok(()),
    }
}
