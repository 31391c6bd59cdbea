//! EAGLE 3: drafts of one layer, which read what three layers of another model compute.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Draft, Exported, Family, Mapping, Values, drafts};
use crate::{target, vocab};

/// What the only layer is called, and what stands around it. `fc` takes what is read of the other model.
const NAMES: Table = &[
    ("embed_tokens", "token_embd"),
    ("norm", "output_norm"),
    ("fc", "fc"),
    ("input_norm", "enc.output_norm"),
    ("midlayer.input_layernorm", "blk.0.attn_norm"),
    ("midlayer.hidden_norm", "blk.0.attn_norm_2"),
    ("midlayer.self_attn.q_proj", "blk.0.attn_q"),
    ("midlayer.self_attn.k_proj", "blk.0.attn_k"),
    ("midlayer.self_attn.v_proj", "blk.0.attn_v"),
    ("midlayer.self_attn.o_proj", "blk.0.attn_output"),
    ("midlayer.post_attention_layernorm", "blk.0.ffn_norm"),
    ("midlayer.mlp.gate_proj", "blk.0.ffn_gate"),
    ("midlayer.mlp.up_proj", "blk.0.ffn_up"),
    ("midlayer.mlp.down_proj", "blk.0.ffn_down"),
    ("model.layers.{}.hidden_norm", "blk.{}.attn_norm_2"),
];
const TOKENS: &str = "draft_vocab_size";
const READ: &str = "eagle_aux_hidden_state_layer_ids";
const WIDTH_READ: &str = "target_hidden_size";
const NORMS: [&str; 2] = ["norm_before_residual", "norm_before_fc"];

pub(super) static EAGLE3: Family = Family {
    classes: &[
        "LlamaForCausalLMEagle3",
        "Eagle3LlamaForCausalLM",
        "Eagle3Speculator",
        "Eagle3DraftModel",
    ],
    architecture: "eagle3",
    model_type: "llama",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["llama-bpe"],
    names: &[NAMES, LLAMA_LIKE],
    fields: &[("norm_before_residual", NORMS[0]), ("norm_before_fc", NORMS[1])],
    complete,
    draft: Some(Draft::OfFamily),
    values,
    first_keys,
    keys: |config, keys| keys.llama_like(config, hyper::completed_head_dim(config)?),
    special: |_, name| Ok(drafts::is_no_weight(name).then_some(Mapping::Dropped)),
    steps: hyper::llama_order,
    computed: hyper::rope_freqs,
    list: Some(drafts::LIST),
    export,
    ..Family::DEFAULT
};

/// Whether a model of another class is one of these by its fields.
pub(super) fn is_meant(config: &Config) -> bool {
    config.find(&[TOKENS]).is_some() && matches!(hyper::block_count(config), Ok(1))
}

fn complete(config: &mut Config) -> Result<(), Error> {
    drafts::flatten(config);
    config.require_u32(&[TOKENS], "the number of tokens that the draft guesses among")?;
    let blocks = hyper::block_count(config)?;
    if blocks != 1 {
        return Err(hyper::not_computed(config, "num_hidden_layers", blocks));
    }
    if hyper::is_of_llama(config) {
        config.default("rms_norm_eps", 1e-6);
    }
    hyper::default_attention(config)
}

/// Which tokens of the other model those of the draft are.
fn values(config: &mut Config, values: &Values) -> Result<(), Error> {
    let tokens = config.part(target::FIELD).require_u32(&["vocab_size"], "the target's tokens")?;
    drafts::read_list(config, values, tokens, None)
}

fn first_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let target = config.part(target::FIELD);
    let read = match config.u32s(READ)?.filter(|layers| !layers.is_empty()) {
        Some(layers) => layers.into_iter().map(drafts::signed).collect::<Vec<_>>(),
        None => {
            let blocks = hyper::block_count(&target)?;
            let last = drafts::signed(blocks).saturating_sub(3);
            vec![2, drafts::signed(blocks / 2), last]
        }
    };
    keys.set("target_layers", Array::from(&read[..]));
    let width = match config.u32(&[WIDTH_READ])? {
        Some(width) => width,
        None => target.require_u32(&["hidden_size"], "the width of the target")?,
    };
    keys.set("target_hidden_size", width);
    for name in NORMS {
        keys.set(name, config.bool(name)?.unwrap_or(false));
    }
    Ok(())
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let read = drafts::numbers(model, "target_layers")?;
    let width = super::exported::count(model, "target_hidden_size")?;
    let tokens = super::exported::count(model, "vocab_size")?;
    let exported = exported.set(READ, read).set(WIDTH_READ, width).set("num_hidden_layers", 1);
    let exported = exported.unwritten(target::FIELD, serde_json::json!({"vocab_size": tokens}));
    let guessed = drafts::list_shape(model).unwrap_or(tokens);
    drafts::export_list(model, exported.set(TOKENS, Value::from(guessed)))
}
