//! Conversion of `GlmMoeDsaForCausalLM`: as `deepseek32`, with the types of the indexer per layer
//! (`full` or `shared`).

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, VocabularyKind, rope};
use crate::deepseek2;
use crate::deepseek2::convert::{QK_ROPE_HEAD_DIM, complete_v3, export_mla_with_mtp, mtp_keys};
use crate::deepseek32::convert::{DEEPSEEK32, Deepseek32, indexer_keys};
use crate::schema::key;

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
        complete_v3(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        deepseek2::convert::mla_keys(config, keys)?;
        let rope_dims =
            config.require_u32(&[QK_ROPE_HEAD_DIM], "the dimensions of a key with RoPE")?;
        keys.set(key::ROPE_DIMENSION_COUNT, rope::rotated_dims(config, rope_dims, 1.0)?);
        mtp_keys(config, keys, false)?;
        indexer_keys(config, keys)?;
        if let Some((_, types)) = config.find(&[INDEXER_TYPES]) {
            let types = types.as_array().into_iter().flatten();
            let is_full: Vec<bool> = types.map(|type_name| type_name == "full").collect();
            keys.set(key::ATTENTION_INDEXER_TYPES, Array::from(&is_full[..]));
        }
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let types = model.metadata().array("glm-dsa.attention.indexer.types");
        let type_name = |is_full: gguf::Value| match is_full.to_bool() {
            Some(true) => "full",
            _ => "shared",
        };
        let types = types.map(|types| types.iter().map(type_name).collect::<Vec<_>>());
        Some(export_mla_with_mtp(model, exported)?.set_some(INDEXER_TYPES, types))
    }
}

/// Field with the type of the indexer of each layer.
pub(crate) const INDEXER_TYPES: &str = "indexer_types";
