//! Conversion of openPangu-Embedded: as llama in NeoX layout, with an optional bias of the
//! attention output.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, defaults, export, hparams,
};
use crate::schema::key;

pub(crate) struct PanguEmbedded;

/// Description of [`PanguEmbedded`].
pub(crate) static PANGU_EMBEDDED: Description = Description {
    classes: &["PanguEmbeddedForCausalLM"],
    architecture: "pangu-embedded",
    model_type: "PanguEmbedded",
    vocabulary: VocabularyKind::SentencePieceThenPrefix,
    ..Description::DECODER
};

impl Converter for PanguEmbedded {
    fn description(&self) -> &'static Description {
        &PANGU_EMBEDDED
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, hparams::stated_head_dim(config)?)?;
        let head_dim = hparams::head_dim(config)?;
        keys.set(key::ATTENTION_KEY_LENGTH, head_dim);
        keys.set(key::ATTENTION_VALUE_LENGTH, head_dim);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let is_tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        Ok((is_tied && name == "lm_head.weight").then_some(Mapping::Dropped))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.set("bias", export::has(model, "blk.0.attn_output.bias")))
    }
}
