//! MiniCPM 3 and PLM: keys and values are compressed, and unpacked by one matrix.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, exported};
use crate::vocab;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"),
    ("model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"),
    ("model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"),
    ("model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b"),
];
const FIELDS: &[(&str, &str)] = &[
    ("attention.q_lora_rank", "q_lora_rank"),
    ("attention.kv_lora_rank", "kv_lora_rank"),
    ("rope.dimension_count", "qk_rope_head_dim"),
];
const FIXED: &str = "qk_nope_head_dim";
const ROTATED: &str = "qk_rope_head_dim";
const VALUE: &str = "v_head_dim";

pub(super) static MINICPM3: Family = Family {
    classes: &["MiniCPM3ForCausalLM"],
    architecture: "minicpm3",
    model_type: "minicpm3",
    vocabulary: vocab::Kind::SentencePiece,
    names: &[NAMES, LLAMA_LIKE],
    fields: FIELDS,
    complete: |config| {
        config.default("rms_norm_eps", 1e-6);
        config.default(VALUE, hyper::width(config)? / hyper::head_count(config)?.max(1));
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.file_type();
        keys.set("context_length", hyper::context_length(config)?);
        keys.set("embedding_length", hyper::width(config)?);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("feed_forward_length", hyper::feed_forward(config)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
        keys.set_f32("attention.layer_norm_rms_epsilon", config.f32(&["rms_norm_eps"])?);
        keys.vocab_size(config)?;
        keys.set_u32("attention.q_lora_rank", config.u32(&["q_lora_rank"])?);
        widths(config, keys)?;
        keys.set_u32("rope.dimension_count", config.u32(&[ROTATED])?);
        // Where there is no key, programs take the width of the model divided among the heads.
        let usual = hyper::width(config)? / hyper::head_count(config)?.max(1);
        let value = config.u32(&[VALUE])?.filter(|&value| value != usual);
        keys.set_u32("attention.value_length", value);
        Ok(())
    },
    computed: |config| {
        let rotated = config.require_u32(&[ROTATED], "dimensions of a key that rotate")?;
        hyper::longrope_factors(config, rotated)
    },
    export: |model, exported| {
        // Programs know these of the architecture.
        let (embedding, depth) = (12, 1.4);
        Some(export(model, exported)?.set("scale_emb", embedding).set("scale_depth", depth))
    },
    ..Family::DEFAULT
};

pub(super) static PLM: Family = Family {
    classes: &["PLMForCausalLM"],
    architecture: "plm",
    model_type: "plm",
    pre_tokenizers: &["qwen2"],
    names: &[NAMES, LLAMA_LIKE],
    fields: FIELDS,
    complete: |config| {
        config.default("rms_norm_eps", 1e-6);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        widths(config, keys)?;
        keys.set_u32("attention.value_length", config.u32(&[VALUE])?);
        keys.set_u32("rope.dimension_count", config.u32(&[ROTATED])?);
        Ok(())
    },
    export,
    ..Family::DEFAULT
};

/// What keys and values are compressed to, and the width of a key.
fn widths(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = |field: &str| config.require_u32(&[field], "a width of compressed attention");
    keys.set("attention.kv_lora_rank", width("kv_lora_rank")?);
    keys.set("attention.key_length", width(FIXED)?.saturating_add(width(ROTATED)?));
    Ok(())
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let count = |key| exported::count(model, key);
    let fixed = count("attention.key_length")?.checked_sub(count("rope.dimension_count")?)?;
    let exported = exported
        .without(&["attention.key_length"])
        .set(FIXED, fixed)
        .set_some(VALUE, count("attention.value_length"));
    Some(exported)
}
