//! Conversion of StarCoder 2.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, export, sliding_window};
use crate::schema::key;

/// Names that differ from those of llama.
const NAMES: Table = &[
    ("model.layers.{}.mlp.c_fc", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.c_proj", "blk.{}.ffn_down"),
];

pub(crate) struct Starcoder2;

/// Description of [`Starcoder2`].
pub(crate) static STARCODER2: Description = Description {
    classes: &["Starcoder2ForCausalLM"],
    architecture: "starcoder2",
    model_type: "starcoder2",
    pre_tokenizers: &["starcoder"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[(key::ATTENTION_LAYER_NORM_EPSILON, "norm_epsilon")],
    required_flags: &[("use_bias", true)],
    ..Description::DECODER
};

impl Converter for Starcoder2 {
    fn description(&self) -> &'static Description {
        &STARCODER2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rope_theta", 10000.0);
        config.default("norm_epsilon", 1e-5);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        sliding_window::unexpected(keys, config, config.u32(&["sliding_window"])?)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.set("use_bias", export::may_have(model, "blk.0.attn_q.bias")))
    }
}
