//! Models that unmask tokens in any order: attention without a mask, Dream, RND1, LLaDA with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::{Converter, Exported, VocabularyKind};
use crate::schema::key;

pub(crate) struct Dream;

impl Converter for Dream {
    fn classes(&self) -> &'static [&'static str] {
        &["DreamModel"]
    }

    fn architecture(&self) -> &'static str {
        "dream"
    }

    fn model_type(&self) -> &'static str {
        "Dream"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::SentencePieceElseBpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        pooling_key(keys, config)?;
        keys.set(key::ATTENTION_CAUSAL, false);
        mask(config, keys)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(masked(model, exported))
    }
}

pub(crate) const MASK: &str = "tokenizer.ggml.mask_token_id";

/// The token that stands for one which is not known yet.
pub(crate) fn mask(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if let Some(id) = config.u32(&["mask_token_id"])? {
        keys.before_vocabulary(MASK, id);
    }
    Ok(())
}

pub(crate) fn masked(model: &Model, exported: Exported) -> Exported {
    exported.set_some("mask_token_id", model.metadata().u64(MASK))
}
