//! GPT-J.
//!
//! llama.cpp neither writes nor runs it. Keys are those of the specification. Tensors
//! are named as in phi2, which has the same layout. Queries and keys stay as they are, for the
//! rotation of neighbours.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::Family;
use super::gpt2::FIELDS;
use super::hyper::{self, Keys};
use super::names::Table;

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.q_proj", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.k_proj", "blk.{}.attn_k"),
    ("transformer.h.{}.attn.v_proj", "blk.{}.attn_v"),
    ("transformer.h.{}.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.mlp.fc_in", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.fc_out", "blk.{}.ffn_down"),
];

pub(super) static GPTJ: Family = Family {
    classes: &["GPTJForCausalLM"],
    architecture: "gptj",
    model_type: "gptj",
    pre_tokenizers: &["gpt-2"],
    names: &[NAMES],
    fields: &FIELDS,
    expects: &[("rotary", true)],
    keys,
    export: |_, exported| Some(exported.fields(&[("rope.dimension_count", "rotary_dim")])),
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    let rotated = config.require_u32(&["rotary_dim"], "the rotated dimensions of a head")?;
    keys.set("context_length", hyper::context_length(config)?);
    keys.set("embedding_length", width);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("feed_forward_length", hyper::inner_width(config, width)?);
    keys.set("attention.head_count", hyper::head_count(config)?);
    keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
    keys.set("rope.dimension_count", rotated);
    keys.file_type();
    Ok(())
}
