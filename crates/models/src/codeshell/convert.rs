//! Conversion of `CodeShellForCausalLM`, which has the tensor names of GPT-2. Linear RoPE scaling
//! with factor 1 is written as llama.cpp does.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, hparams, rope};
use crate::gpt2;
use crate::schema::key;

pub(crate) struct Codeshell;

/// Description of [`Codeshell`].
pub(crate) static CODESHELL: Description = Description {
    classes: &["CodeShellForCausalLM"],
    architecture: "codeshell",
    model_type: "codeshell",
    pre_tokenizers: &["codeshell"],
    tensor_prefix: "transformer.",
    tensor_names: &[gpt2::convert::NAMES],
    config_fields: &gpt2::convert::FIELDS,
    required_flags: &[("tie_word_embeddings", false)],
    ..Description::DECODER
};

impl Converter for Codeshell {
    fn description(&self) -> &'static Description {
        &CODESHELL
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        keys.set(key::CONTEXT_LENGTH, config.require_u32(&["n_positions"], "the context length")?);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::inner_width(config, width)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        let groups = config.require_u32(&["num_query_groups"], "the number of KV heads")?;
        keys.set(key::ATTENTION_HEAD_COUNT_KV, groups);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        keys.set(key::ROPE_FREQ_BASE, rope::DEFAULT_BASE);
        keys.set(key::ROPE_SCALING_TYPE, "linear");
        keys.set(key::ROPE_SCALING_FACTOR, 1.0f32);
        Ok(())
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let fields = &[("attention.head_count_kv", "num_query_groups")];
        let without = &["rope.freq_base", "rope.scaling.type"];
        Some(exported.fields(fields).without(without).set("tie_word_embeddings", false))
    }
}
