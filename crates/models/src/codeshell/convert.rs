//! CodeShell: as GPT-2, with rotary positions and shared heads of keys and values.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Exported, hparams};
use crate::gpt2;

pub(crate) struct Codeshell;

impl Converter for Codeshell {
    fn classes(&self) -> &'static [&'static str] {
        &["CodeShellForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "codeshell"
    }

    fn model_type(&self) -> &'static str {
        "codeshell"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["codeshell"]
    }

    fn tensor_prefix(&self) -> &'static str {
        "transformer."
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[gpt2::convert::NAMES]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &gpt2::convert::FIELDS
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("tie_word_embeddings", false)]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        keys.set("context_length", config.require_u32(&["n_positions"], "the longest context")?);
        keys.set("embedding_length", width);
        keys.set("feed_forward_length", hparams::inner_width(config, width)?);
        keys.set("block_count", hparams::block_count(config)?);
        keys.set("attention.head_count", hparams::head_count(config)?);
        let groups = config.require_u32(&["num_query_groups"], "heads of keys and values")?;
        keys.set("attention.head_count_kv", groups);
        keys.set("attention.layer_norm_epsilon", hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        keys.set("rope.freq_base", hparams::DEFAULT_BASE);
        keys.set("rope.scaling.type", "linear");
        keys.set("rope.scaling.factor", 1.0f32);
        Ok(())
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let fields = &[("attention.head_count_kv", "num_query_groups")];
        let without = &["rope.freq_base", "rope.scaling.type"];
        Some(exported.fields(fields).without(without).set("tie_word_embeddings", false))
    }
}
