//! Conversion of dense Qwen3 models.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::{Converter, Description, Exported, VocabularyKind, hparams, sliding_window};

pub(crate) struct Qwen3;

/// Description of [`Qwen3`].
pub(crate) static QWEN3: Description = Description {
    classes: &["Qwen3ForCausalLM", "Qwen3Model", "StepVLForConditionalGeneration"],
    architecture: "qwen3",
    model_type: "qwen3",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Qwen3 {
    fn description(&self) -> &'static Description {
        &QWEN3
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        // 128 is the default in `transformers`; Qwen2 has no such default.
        keys.decoder(config, hparams::stated_head_dim(config)?.or(Some(128)))?;
        sliding_window::qwen(keys, config, |layer, first| layer >= first)?;
        pooling_key(keys, config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(sliding_window::export_of_qwen(model, exported))
    }
}
