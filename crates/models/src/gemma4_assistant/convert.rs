//! Conversion of the Gemma 4 assistant: `gemma4` without key and value projections, and with the
//! hidden size of the target.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, export, hparams};
use crate::schema::key;
use crate::{gemma2, gemma4};

const ASSISTANT_NAMES: Table =
    &[("pre_projection", "nextn.pre_projection"), ("post_projection", "nextn.post_projection")];

pub(crate) struct Assistant;

/// Description of [`Assistant`].
pub(crate) static ASSISTANT: Description = Description {
    classes: &["Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"],
    architecture: "gemma4-assistant",
    model_type: "gemma4_assistant",
    tensor_names: &[ASSISTANT_NAMES, gemma2::convert::NORMS, LLAMA_LIKE],
    ..gemma4::convert::GEMMA4
};

impl Converter for Assistant {
    fn description(&self) -> &'static Description {
        &ASSISTANT
    }

    fn base(&self) -> &'static dyn Converter {
        &gemma4::convert::Gemma4
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        gemma4::convert::keys(config, keys)?;
        let width =
            config.require_u32(&["backbone_hidden_size"], "the hidden size of the target")?;
        keys.set(key::EMBEDDING_LENGTH_OUT, width);
        keys.set(key::NEXTN_PREDICT_LAYERS, hparams::block_count(config)?);
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name.contains("masked_embedding")
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let width = export::count(model, key::EMBEDDING_LENGTH_OUT)?;
        Some(gemma4::convert::export(model, exported)?.set("backbone_hidden_size", width))
    }
}
