//! DeepSeek: experts after some dense layers; compressed attention since the second generation.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, Description, Exported, VocabularyKind, hparams};
use crate::deepseek2;
use crate::deepseek2::convert::{ROTATED, complete_third, export_with_further, further_keys};
use crate::deepseek32::convert::{DEEPSEEK32, Deepseek32, indexer_keys};
use crate::schema::key;

/// GLM 5, with the same indexer in some layers or all.
pub(crate) struct GlmDsa;

/// Description of [`GlmDsa`].
pub(crate) static GLM_DSA: Description = Description {
    classes: &["GlmMoeDsaForCausalLM"],
    architecture: "glm-dsa",
    model_type: "glm_moe_dsa",
    vocabulary: VocabularyKind::Glm4Moe,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    ..DEEPSEEK32
};

impl Converter for GlmDsa {
    fn description(&self) -> &'static Description {
        &GLM_DSA
    }

    fn base(&self) -> &'static dyn Converter {
        &Deepseek32
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete_third(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::keys(config, keys)?;
        let rotated = config.require_u32(&[ROTATED], "dimensions that rotate")?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::rotated_dims(config, rotated, 1.0)?);
        further_keys(config, keys, false)?;
        indexer_keys(config, keys)?;
        if let Some((_, kinds)) = config.find(&[INDEXER_KINDS]) {
            let kinds = kinds.as_array().into_iter().flatten();
            let is_full: Vec<bool> = kinds.map(|kind| kind == "full").collect();
            keys.set(key::ATTENTION_INDEXER_TYPES, Array::from(&is_full[..]));
        }
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let kinds = model.metadata().array("glm-dsa.attention.indexer.types");
        let kind = |is_full: gguf::Value| match is_full.to_bool() {
            Some(true) => "full",
            _ => "shared",
        };
        let kinds = kinds.map(|kinds| kinds.iter().map(kind).collect::<Vec<_>>());
        Some(export_with_further(model, exported)?.set_some(INDEXER_KINDS, kinds))
    }
}

pub(crate) const INDEXER_KINDS: &str = "indexer_types";
