//! Conversion of `ArceeForCausalLM`: as Llama, with an FFN without a gate. Query and key rows are
//! permuted to the interleaved RoPE layout.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::{
    Converter, Description, ExtraTensors, VocabularyKind, defaults, hparams, rope, steps,
};

pub(crate) struct Arcee;

/// Description of [`Arcee`].
pub(crate) static ARCEE: Description = Description {
    classes: &["ArceeForCausalLM"],
    architecture: "arcee",
    model_type: "arcee",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["llama-bpe"],
    required_flags: &[("attention_bias", false), ("mlp_bias", false)],
    ..Description::DECODER
};

impl Converter for Arcee {
    fn description(&self) -> &'static Description {
        &ARCEE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, Some(hparams::head_dim(config)?))?;
        pooling_key(keys, config)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }
}
