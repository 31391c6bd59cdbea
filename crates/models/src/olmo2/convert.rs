//! Conversion of OLMo 2 and Olmo 3, which have norms after attention and FFN only.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, defaults, sliding_window};
use crate::schema::key;

/// Norms after attention and FFN.
pub(crate) const POST_NORMS: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

const OLMO3_CLASS: &str = "Olmo3ForCausalLM";

pub(crate) struct Olmo2;

/// Description of [`Olmo2`].
pub(crate) static OLMO2: Description = Description {
    classes: &["Olmo2ForCausalLM", OLMO3_CLASS],
    architecture: "olmo2",
    model_type: "olmo2",
    pre_tokenizers: &["dbrx"],
    tensor_names: &[POST_NORMS, LLAMA_LIKE],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Olmo2 {
    fn description(&self) -> &'static Description {
        &OLMO2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        if config.class()? == OLMO3_CLASS {
            config.default("sliding_window", 4096);
            config.default("rope_theta", 5e5);
            config.default("rope_local_base_freq", 5e5);
        }
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        if let Some(window) = config.u32(&["sliding_window"])? {
            keys.set(key::ATTENTION_SLIDING_WINDOW, window);
            keys.set(
                key::ATTENTION_SLIDING_WINDOW_PATTERN,
                Array::from(&sliding_window::layers(config, 4)?[..]),
            );
        }
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let metadata = model.metadata();
        if metadata.get("olmo2.attention.sliding_window").is_none() {
            return Some(exported);
        }
        let exported = exported
            .class(OLMO3_CLASS, "olmo3")
            .fields(&[("rope.freq_base_swa", "rope_local_base_freq")]);
        Some(sliding_window::export_of_pattern(model, exported))
    }
}
