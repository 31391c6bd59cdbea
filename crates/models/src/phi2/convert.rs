//! Conversion of Phi-1, Phi-1.5 and Phi-2.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, export, hparams, rope};
use crate::schema::key;

/// Names that differ from those of llama.
const NAMES: Table = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.{}.self_attn.dense", "blk.{}.attn_output"),
    ("model.layers.{}.mlp.fc1", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.fc2", "blk.{}.ffn_down"),
];

pub(crate) struct Phi2;

/// Description of [`Phi2`].
pub(crate) static PHI2: Description = Description {
    classes: &["PhiForCausalLM"],
    architecture: "phi2",
    model_type: "phi",
    pre_tokenizers: &["phi-2"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[(key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps")],
    required_flags: &[("qk_layernorm", false)],
    ..Description::DECODER
};

impl Converter for Phi2 {
    fn description(&self) -> &'static Description {
        &PHI2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let heads = hparams::head_count(config)?;
        let rotary = (rope::rotated_share(config, 0.5)? * f64::from(width)) as u32 / heads;
        let epsilon = config.f32(&["layer_norm_epsilon", "layer_norm_eps"])?.unwrap_or(1e-5);
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, width);
        let feed_forward = config.u32(&["intermediate_size"])?;
        keys.set(key::FEED_FORWARD_LENGTH, feed_forward.unwrap_or(width.saturating_mul(4)));
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, heads);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, epsilon);
        keys.set(key::ROPE_DIMENSION_COUNT, rotary);
        keys.file_type();
        keys.set_unprefixed(key::TOKENIZER_GGML_ADD_BOS_TOKEN, false);
        keys.rope_unless_default(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.set_some("partial_rotary_factor", export::rotated_share(model)))
    }
}
