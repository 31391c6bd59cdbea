//! GPT-2.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use super::hyper::{self, Keys};
use super::names::{Table, captures};
use super::{ExpertSlot, Family, Mapping};

/// Without the prefix `transformer.`, which the first uploads do not have.
pub(super) const NAMES: Table = &[
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

pub(super) static GPT2: Family = Family {
    classes: &["GPT2LMHeadModel"],
    architecture: "gpt2",
    model_type: "gpt2",
    pre_tokenizers: &["gpt-2"],
    prefix: "transformer.",
    names: &[NAMES],
    fields: &FIELDS,
    expects: &[("scale_attn_by_inverse_layer_idx", false)],
    keys,
    steps,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    keys.set("block_count", hyper::block_count(config)?);
    keys.set(
        "context_length",
        config.require_u32(&["n_ctx", "n_positions"], "the longest context, in tokens")?,
    );
    keys.set("embedding_length", width);
    keys.set("feed_forward_length", hyper::inner_width(config, width)?);
    keys.set("attention.head_count", hyper::head_count(config)?);
    keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
    keys.file_type();
    Ok(())
}

fn steps(_config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    // The layers are convolutions of width 1, whose matrices are stored the other way round.
    let ends = [".attn_qkv.weight", ".attn_output.weight", ".ffn_up.weight", ".ffn_down.weight"];
    let transposed = ends.iter().any(|end| name.ends_with(end));
    Ok(Vec::from_iter(transposed.then_some(Step::Transpose)))
}

/// What configurations of GPT-2 and of models like it call the hyper-parameters.
pub(super) const FIELDS: [(&str, &str); 6] = [
    ("block_count", "n_layer"),
    ("context_length", "n_positions"),
    ("embedding_length", "n_embd"),
    ("feed_forward_length", "n_inner"),
    ("attention.head_count", "n_head"),
    ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
];

/// ruGPT 3 XL: the same under other names, with queries, keys and values apart. It comes back as GPT-2.
pub(super) static RUGPT3XL: Family = Family {
    classes: &["RuGPT3XLForCausalLM"],
    architecture: "gpt2",
    model_type: "rugpt3xl",
    pre_tokenizers: &["gpt-2"],
    names: &[&[
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
    special: |_, name| {
        for (index, part) in (0..).zip("qkv".chars()) {
            for end in ["weight", "bias"] {
                let pattern = format!("model.layers.{{}}.self_attn.{part}_proj.{end}");
                if let Some(&[block]) = captures(&pattern, name).as_deref() {
                    let slot = ExpertSlot { index, count: 3 };
                    return Ok(Some(Mapping::slot(format!("blk.{block}.attn_qkv.{end}"), slot)));
                }
            }
        }
        Ok(None)
    },
    rows_of_parts: &[".attn_qkv.weight", ".attn_qkv.bias"],
    ..Family::DEFAULT
};
