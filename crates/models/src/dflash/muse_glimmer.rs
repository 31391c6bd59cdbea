//! Conversion of the draft of Muse Glimmer, a DFlash draft whose fields are at the top of
//! config.json. Exports have the class of DFlash.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, renamed};
use crate::convert::{Converter, Description, Draft, Exported, Mapping, draft};
use crate::dflash;
use crate::muse_glimmer::convert::{LAYER_TYPES, sliding_window_layers};
use crate::schema::key;

/// Draft of Muse Glimmer.
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
            config.require_u32(&["block_size"], "the number of tokens of a block")?,
        );
        const TARGET_LAYER_IDS: &str = "target_layer_ids";
        let target_layers = config.u32s(TARGET_LAYER_IDS)?;
        let target_layers = target_layers.ok_or_else(|| {
            config.missing(TARGET_LAYER_IDS, "the target layers whose hidden states are read")
        })?;
        let after_layers: Vec<i32> =
            target_layers.into_iter().map(|layer| draft::signed(layer.saturating_add(1))).collect();
        keys.set(key::TARGET_LAYERS, Array::from(&after_layers[..]));
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
            keys.set_unprefixed(key::TOKENIZER_GGML_MASK_TOKEN_ID, token);
        }
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let bare = name.strip_prefix("model.").unwrap_or(name);
        Ok(renamed(bare, &[dflash::convert::NAMES]).map(|gguf_name| Mapping::one(gguf_name, [])))
    }

    // Exports have the class of `Dflash`.
    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}
