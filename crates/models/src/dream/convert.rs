//! Models that unmask tokens in any order: attention without a mask, Dream, RND1, LLaDA with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::{Converter, Description, Exported, VocabularyKind};
use crate::schema::key;

pub(crate) struct Dream;

/// Description of [`Dream`].
pub(crate) static DREAM: Description = Description {
    classes: &["DreamModel"],
    architecture: "dream",
    model_type: "Dream",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    ..Description::DECODER
};

impl Converter for Dream {
    fn description(&self) -> &'static Description {
        &DREAM
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
