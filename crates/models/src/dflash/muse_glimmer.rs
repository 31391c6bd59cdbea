//! Muse Glimmer: heads of queries and keys are normalized without weights, queries by a factor; and its draft.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, renamed};
use crate::convert::{Converter, Description, Draft, Exported, Mapping, draft};
use crate::dflash;
use crate::muse_glimmer::convert::{LAYER_TYPES, sliding_window_layers};
use crate::schema::key;

/// Its draft, which reads as DFlash does.
pub(crate) struct Assistant;

/// Description of [`Assistant`].
pub(crate) static ASSISTANT: Description = Description {
    classes: &["MuseGlimmerAssistantModel"],
    architecture: "dflash",
    model_type: "muse_glimmer_assistant",
    tensor_names: &[dflash::convert::NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Assistant {
    fn description(&self) -> &'static Description {
        &ASSISTANT
    }

    fn draft(&self) -> Option<Draft> {
        Some(Draft::Target)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(
            key::BLOCK_SIZE,
            config.require_u32(&["block_size"], "tokens that are guessed at once")?,
        );
        const READ: &str = "target_layer_ids";
        let read = config.u32s(READ)?;
        let read =
            read.ok_or_else(|| config.missing(READ, "layers of the target that are read"))?;
        let behind: Vec<i32> =
            read.into_iter().map(|layer| draft::signed(layer.saturating_add(1))).collect();
        keys.set(key::TARGET_LAYERS, Array::from(&behind[..]));
        let window = config.u32(&["sliding_window"])?.filter(|&window| window > 0);
        if let Some(window) = window.filter(|_| config.find(&[LAYER_TYPES]).is_some()) {
            keys.set(key::ATTENTION_SLIDING_WINDOW, window);
            keys.set(
                key::ATTENTION_SLIDING_WINDOW_PATTERN,
                Array::from(&sliding_window_layers(config)?[..]),
            );
        }
        Ok(())
    }

    fn trailing_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        if let Some(token) = config.u32(&["mask_token_id"])? {
            keys.set_whole(key::TOKENIZER_GGML_MASK_TOKEN_ID, token);
        }
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let bare = name.strip_prefix("model.").unwrap_or(name);
        Ok(renamed(bare, &[dflash::convert::NAMES]).map(|ours| Mapping::one(ours, [])))
    }

    // It comes back as the draft that it is like.
    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}
