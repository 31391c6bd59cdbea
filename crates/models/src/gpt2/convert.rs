//! Conversion of GPT-2, whose `Conv1D` matrices are transposed, and of ruGPT-3 XL, whose Q, K and V
//! are separate.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, ExpertSlot, Mapping, hparams};
use crate::schema::key;

/// Tensor names without the prefix `transformer.`, which the first uploads do not have.
pub(crate) const NAMES: Table = &[
    ("wte", "token_embd"),
    ("wpe", "position_embd"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
    ("h.{}.ln_1", "blk.{}.attn_norm"),
    ("h.{}.attn.c_attn", "blk.{}.attn_qkv"),
    ("h.{}.attn.c_proj", "blk.{}.attn_output"),
    ("h.{}.ln_2", "blk.{}.ffn_norm"),
    ("h.{}.mlp.c_fc", "blk.{}.ffn_up"),
    ("h.{}.mlp.c_proj", "blk.{}.ffn_down"),
];

pub(crate) struct Gpt2;

/// Description of [`Gpt2`].
pub(crate) static GPT2: Description = Description {
    classes: &["GPT2LMHeadModel"],
    architecture: "gpt2",
    model_type: "gpt2",
    pre_tokenizers: &["gpt-2"],
    tensor_prefix: "transformer.",
    tensor_names: &[NAMES],
    config_fields: &FIELDS,
    required_flags: &[("scale_attn_by_inverse_layer_idx", false)],
    ..Description::DECODER
};

impl Converter for Gpt2 {
    fn description(&self) -> &'static Description {
        &GPT2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let embedding_length = hparams::width(config)?;
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(
            key::CONTEXT_LENGTH,
            config.require_u32(&["n_ctx", "n_positions"], "the context length in tokens")?,
        );
        keys.set(key::EMBEDDING_LENGTH, embedding_length);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::inner_width(config, embedding_length)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    fn modify_tensor(&self, _config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        // `Conv1D` stores its matrix as inputs x outputs.
        const CONV1D: [&str; 4] =
            [".attn_qkv.weight", ".attn_output.weight", ".ffn_up.weight", ".ffn_down.weight"];
        let is_conv1d = CONV1D.iter().any(|suffix| name.ends_with(suffix));
        Ok(Vec::from_iter(is_conv1d.then_some(Step::Transpose)))
    }
}

/// Keys and config.json fields of GPT-2 and of models with the same field names.
pub(crate) const FIELDS: [(&str, &str); 6] = [
    ("block_count", "n_layer"),
    ("context_length", "n_positions"),
    ("embedding_length", "n_embd"),
    ("feed_forward_length", "n_inner"),
    ("attention.head_count", "n_head"),
    ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
];

/// ruGPT-3 XL: GPT-2 with other tensor names and separate Q, K and V, which are stacked to the
/// fused QKV matrix. Exports write GPT-2.
pub(crate) struct Rugpt3xl;

/// Description of [`Rugpt3xl`].
pub(crate) static RUGPT3XL: Description = Description {
    classes: &["RuGPT3XLForCausalLM"],
    architecture: "gpt2",
    model_type: "rugpt3xl",
    pre_tokenizers: &["gpt-2"],
    tensor_names: &[&[
        ("model.embed_tokens", "token_embd"),
        ("model.embed_positions", "position_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers.{}.input_layernorm", "blk.{}.attn_norm"),
        ("model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
        ("model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
        ("model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"),
        ("model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
    ]],
    ..Description::DECODER
};

impl Converter for Rugpt3xl {
    fn description(&self) -> &'static Description {
        &RUGPT3XL
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (index, part) in (0..).zip(["q", "k", "v"]) {
            for suffix in ["weight", "bias"] {
                let pattern = format!("model.layers.{{}}.self_attn.{part}_proj.{suffix}");
                if let Some(&[block]) = captures(&pattern, name).as_deref() {
                    let slot = ExpertSlot { index, count: 3 };
                    return Ok(Some(Mapping::slot(format!("blk.{block}.attn_qkv.{suffix}"), slot)));
                }
            }
        }
        Ok(None)
    }

    fn row_stacked_suffixes(&self) -> &'static [&'static str] {
        &[".attn_qkv.weight", ".attn_qkv.bias"]
    }
}
