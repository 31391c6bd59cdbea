//! Refact: ALiBi, one head of keys and values.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use super::experts::halves;
use super::hyper::{self, Keys};
use super::names::{Table, captures};
use super::{Family, MappedTensor, Mapping};

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("lm_head", "output"),
    ("transformer.ln_f", "output_norm"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.q", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.c_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.ln_2", "blk.{}.ffn_norm"),
    ("transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down"),
];
const KEYS_AND_VALUES: &str = "transformer.h.{}.attn.kv.weight";
const GATE_AND_UP: &str = "transformer.h.{}.mlp.gate_up_proj.weight";

pub(super) static REFACT: Family = Family {
    classes: &["GPTRefactForCausalLM"],
    architecture: "refact",
    model_type: "gpt_refact",
    pre_tokenizers: &["refact"],
    names: &[NAMES],
    fields: &[
        ("block_count", "n_layer"),
        ("context_length", "n_positions"),
        ("embedding_length", "n_embd"),
        ("attention.head_count", "n_head"),
        ("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
    ],
    expects: &[("multi_query", true)],
    complete: |config| {
        config.default("layer_norm_epsilon", 1e-5);
        Ok(())
    },
    keys,
    special,
    export: |_, exported| {
        let computed = &["feed_forward_length", "attention.head_count_kv"];
        let patterns = [KEYS_AND_VALUES, GATE_AND_UP];
        Some(exported.patterns(patterns).without(computed).set("multi_query", true))
    },
    ..Family::DEFAULT
};

/// Two thirds of four times the model's, rounded up.
fn inner_width(config: &Config) -> Result<u32, Error> {
    const MULTIPLE: u64 = 256;
    let width = u64::from(hyper::width(config)?) * 8 / 3;
    Ok(width.next_multiple_of(MULTIPLE).try_into().unwrap_or(u32::MAX))
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.set("context_length", hyper::context_length(config)?);
    keys.set("embedding_length", hyper::width(config)?);
    keys.set("feed_forward_length", inner_width(config)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.head_count", hyper::head_count(config)?);
    keys.set("attention.head_count_kv", 1u32);
    keys.set("attention.layer_norm_rms_epsilon", hyper::layer_norm_epsilon(config)?);
    keys.file_type();
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(&[block]) = captures(KEYS_AND_VALUES, name).as_deref() {
        let len = u64::from(hyper::head_dim(config)?);
        let half = |part: &str, start| MappedTensor {
            name: format!("blk.{block}.{part}.weight"),
            steps: vec![Step::Pick { groups: 1, start, len }],
            slot: None,
        };
        return Ok(Some(Mapping::Made(vec![half("attn_k", 0), half("attn_v", len)])));
    }
    let found = captures(GATE_AND_UP, name);
    let Some(&[block]) = found.as_deref() else { return Ok(None) };
    let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}"));
    Ok(Some(halves(names, 1, inner_width(config)?)))
}
