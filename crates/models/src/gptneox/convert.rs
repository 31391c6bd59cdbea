//! Conversion of GPT-NeoX and Pythia: the fused QKV matrix is regrouped from head by head to all
//! queries, all keys, all values.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, export, hparams, rope, steps};
use crate::schema::key;

const NAMES: Table = &[
    ("gpt_neox.embed_in", "token_embd"),
    ("gpt_neox.final_layer_norm", "output_norm"),
    ("embed_out", "output"),
    // Name in newer versions of `transformers`.
    ("lm_head", "output"),
    ("gpt_neox.layers.{}.input_layernorm", "blk.{}.attn_norm"),
    ("gpt_neox.layers.{}.attention.query_key_value", "blk.{}.attn_qkv"),
    ("gpt_neox.layers.{}.attention.dense", "blk.{}.attn_output"),
    ("gpt_neox.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("gpt_neox.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("gpt_neox.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

/// Default of `rotary_pct` in `transformers`.
const DEFAULT_ROTARY_PCT: f64 = 0.25;

pub(crate) struct Gptneox;

/// Description of [`Gptneox`].
pub(crate) static GPTNEOX: Description = Description {
    classes: &["GPTNeoXForCausalLM"],
    architecture: "gptneox",
    model_type: "gpt_neox",
    pre_tokenizers: &["gpt-2"],
    tensor_names: &[NAMES],
    config_fields: &[
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps"),
        (key::ROPE_FREQ_BASE, "rotary_emb_base"),
        (key::USE_PARALLEL_RESIDUAL, "use_parallel_residual"),
    ],
    required_flags: &[("attention_bias", true)],
    ..Description::DECODER
};

impl Converter for Gptneox {
    fn description(&self) -> &'static Description {
        &GPTNEOX
    }

    // llama.cpp's converter writes no file type here.
    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let head_dim = hparams::head_dim(config)?;
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(
            key::ROPE_DIMENSION_COUNT,
            rope::rotated_dims(config, head_dim, DEFAULT_ROTARY_PCT)?,
        );
        keys.rope_unless_default(config)?;
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::USE_PARALLEL_RESIDUAL, config.bool("use_parallel_residual")?.unwrap_or(true));
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let step = name.contains(".attn_qkv.").then(|| steps::sort_heads(config)).transpose()?;
        Ok(Vec::from_iter(step))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.set_some("rotary_pct", export::rotated_share(model)))
    }
}
