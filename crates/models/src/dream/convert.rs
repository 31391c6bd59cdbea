//! Conversion of `DreamModel`: as Qwen 2, with bidirectional attention and the id of the mask
//! token.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
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
        mask_token_key(config, keys)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_mask_token(model, exported))
    }
}

/// Writes the id of the mask token, which stands for unknown tokens.
pub(crate) fn mask_token_key(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    if let Some(id) = config.u32(&["mask_token_id"])? {
        keys.set_unprefixed(key::TOKENIZER_GGML_MASK_TOKEN_ID, id);
    }
    Ok(())
}

/// Sets the field of the mask token.
pub(crate) fn export_mask_token(model: &Model, exported: Exported) -> Exported {
    exported.set_some("mask_token_id", model.metadata().u64(key::TOKENIZER_GGML_MASK_TOKEN_ID))
}
