//! Conversion of `BloomForCausalLM`. The checkpoint interleaves query, key and value by head; rows
//! are regrouped by kind.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, hparams, steps};
use crate::schema::key;

/// Names without the prefix `transformer.`, which the first uploads lack.
const NAMES: Table = &[
    ("word_embeddings", "token_embd"),
    ("word_embeddings_layernorm", "token_embd_norm"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
    ("h.{}.input_layernorm", "blk.{}.attn_norm"),
    ("h.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("h.{}.self_attention.dense", "blk.{}.attn_output"),
    ("h.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

pub(crate) struct Bloom;

/// Description of [`Bloom`].
pub(crate) static BLOOM: Description = Description {
    classes: &["BloomForCausalLM", "BloomModel"],
    architecture: "bloom",
    model_type: "bloom",
    pre_tokenizers: &["bloom"],
    tensor_prefix: "transformer.",
    tensor_names: &[NAMES],
    config_fields: &[
        (key::BLOCK_COUNT, "n_layer"),
        (key::CONTEXT_LENGTH, "seq_length"),
        (key::FEED_FORWARD_LENGTH, "n_inner"),
        (key::ATTENTION_HEAD_COUNT, "n_head"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
    ],
    required_flags: &[("apply_residual_connection_post_layernorm", false)],
    ..Description::DECODER
};

impl Converter for Bloom {
    fn description(&self) -> &'static Description {
        &BLOOM
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let heads = hparams::head_count(config)?;
        // ALiBi has no maximum context length; llama.cpp writes the hidden size if none is stated.
        keys.set(key::CONTEXT_LENGTH, config.u32(&["seq_length"])?.unwrap_or(width));
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::inner_width(config, width)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, heads);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, heads);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let step = name.contains(".attn_qkv.").then(|| steps::sort_heads(config)).transpose()?;
        Ok(Vec::from_iter(step))
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.without(&[key::ATTENTION_HEAD_COUNT_KV]))
    }
}
