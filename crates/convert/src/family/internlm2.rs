//! InternLM2, and InternLM3, which is as llama.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use super::hyper::{self, Keys};
use super::names::{Table, captures};
use super::{Family, MappedTensor, Mapping};
use crate::vocab;

const NAMES: Table = &[
    ("model.tok_embeddings", "token_embd"),
    ("model.norm", "output_norm"),
    ("output", "output"),
    ("model.layers.{}.attention_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.attention.wo", "blk.{}.attn_output"),
    ("model.layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.w2", "blk.{}.ffn_down"),
    ("model.layers.{}.feed_forward.w3", "blk.{}.ffn_up"),
];

const FUSED: &str = "model.layers.{}.attention.wqkv.weight";

pub(super) static INTERNLM2: Family = Family {
    classes: &["InternLM2ForCausalLM"],
    architecture: "internlm2",
    model_type: "internlm2",
    vocabulary: vocab::Kind::InternLm2,
    names: &[NAMES],
    keys,
    special,
    // The bias is there where nothing is said.
    export: |_, exported| Some(exported.patterns([FUSED]).set("bias", false)),
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)
}

/// Queries, keys and values are one matrix: for each key head its queries, itself, its value.
fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let Some(&[block]) = captures(FUSED, name).as_deref() else {
        return Ok(None);
    };
    let heads = hyper::head_count(config)?;
    let heads_kv = hyper::head_count_kv(config)?;
    let head_dim = u64::from(hyper::width(config)? / heads);
    let queries = u64::from(heads / heads_kv) * head_dim;
    let pick = |start, len| Step::Pick { groups: heads_kv.into(), start, len };
    let made = |part: &str, steps| MappedTensor {
        name: format!("blk.{block}.{part}.weight"),
        steps,
        slot: None,
    };
    let turned = |heads: u32| Step::InterleaveHalves { heads: heads.into() };
    Ok(Some(Mapping::Made(vec![
        made("attn_q", vec![pick(0, queries), turned(heads)]),
        made("attn_k", vec![pick(queries, head_dim), turned(heads_kv)]),
        made("attn_v", vec![pick(queries + head_dim, head_dim)]),
    ])))
}

pub(super) static INTERNLM3: Family = Family {
    classes: &["InternLM3ForCausalLM"],
    architecture: "llama",
    model_type: "internlm3",
    vocabulary: vocab::Kind::InternLm3,
    complete: |config| {
        config.default("rms_norm_eps", 1e-6);
        hyper::default_attention(config)
    },
    keys: |config, keys| keys.llama_like(config, hyper::stated_head_dim(config)?),
    steps: hyper::llama_order,
    // It comes back as llama.
    export: |_, _| None,
    ..Family::DEFAULT
};
