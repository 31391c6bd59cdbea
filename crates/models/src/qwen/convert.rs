//! Conversion of the first generation of Qwen.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, hparams};
use crate::schema::key;

pub(crate) struct Qwen;

/// Description of [`Qwen`].
pub(crate) static QWEN: Description = Description {
    classes: &["QWenLMHeadModel"],
    architecture: "qwen",
    model_type: "qwen",
    pre_tokenizers: &["qwen2"],
    tensor_prefix: "transformer.",
    tensor_names: &[&[
        ("wte", "token_embd"),
        ("ln_f", "output_norm"),
        ("lm_head", "output"),
        ("h.{}.ln_1", "blk.{}.attn_norm"),
        ("h.{}.attn.c_attn", "blk.{}.attn_qkv"),
        ("h.{}.attn.c_proj", "blk.{}.attn_output"),
        ("h.{}.ln_2", "blk.{}.ffn_norm"),
        ("h.{}.mlp.w2", "blk.{}.ffn_gate"),
        ("h.{}.mlp.w1", "blk.{}.ffn_up"),
        ("h.{}.mlp.c_proj", "blk.{}.ffn_down"),
    ]],
    config_fields: &[
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
        (key::ROPE_FREQ_BASE, "rotary_emb_base"),
    ],
    required_flags: &[("no_bias", true)],
    ..Description::DECODER
};

impl Converter for Qwen {
    fn description(&self) -> &'static Description {
        &QWEN
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        // config.json calls it the epsilon of layer norms, while the model has RMS norms.
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, hparams::layer_norm_epsilon(config)?);
        Ok(())
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.without(&[key::ATTENTION_LAYER_NORM_RMS_EPSILON]))
    }
}
