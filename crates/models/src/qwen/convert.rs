//! Qwen2 and Qwen3, dense.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Exported, hparams};
use crate::schema::key;

/// The first Qwen.
pub(crate) struct Qwen;

impl Converter for Qwen {
    fn classes(&self) -> &'static [&'static str] {
        &["QWenLMHeadModel"]
    }

    fn architecture(&self) -> &'static str {
        "qwen"
    }

    fn model_type(&self) -> &'static str {
        "qwen"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn tensor_prefix(&self) -> &'static str {
        "transformer."
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[&[
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
        ]]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
            (key::ROPE_FREQ_BASE, "rotary_emb_base"),
        ]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("no_bias", true)]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        // Programs want the epsilon under the name of its norms.
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, hparams::layer_norm_epsilon(config)?);
        Ok(())
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.without(&[key::ATTENTION_LAYER_NORM_RMS_EPSILON]))
    }
}
