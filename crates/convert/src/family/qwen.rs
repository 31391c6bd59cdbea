//! Qwen2 and Qwen3, dense.

use super::modules::pooling_key;
use super::names::{LLAMA_LIKE, Table};
use super::{Family, hyper, windows};
use crate::vocab;

pub(super) static QWEN2: Family = Family {
    classes: &[
        "Qwen2ForCausalLM",
        "Qwen2Model",
        "AudioFlamingo3ForConditionalGeneration",
        "DotsOCRForCausalLM",
        "KORMoForCausalLM",
        "Qwen2AudioForConditionalGeneration",
    ],
    architecture: "qwen2",
    model_type: "qwen2",
    vocabulary: vocab::Kind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    names: &[LLAMA_LIKE, KORMO],
    keys: |config, keys| {
        keys.decoder(config, hyper::stated_head_dim(config)?)?;
        windows::qwen(keys, config, |layer, first| layer >= first)?;
        pooling_key(keys, config)
    },
    export: |model, exported| Some(windows::export_of_qwen(model, exported)),
    ..Family::DEFAULT
};

/// What KORMo calls the norms.
const KORMO: Table = &[
    ("model.layers.{}.pre_attention_layernorm", "blk.{}.attn_norm"),
    ("model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm"),
];

pub(super) static QWEN3: Family = Family {
    classes: &["Qwen3ForCausalLM", "Qwen3Model", "StepVLForConditionalGeneration"],
    architecture: "qwen3",
    model_type: "qwen3",
    vocabulary: vocab::Kind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    expects: &[("attention_bias", false)],
    keys: |config, keys| {
        // As `transformers` completes it; the width of a head of Qwen2 it does not complete.
        keys.decoder(config, hyper::stated_head_dim(config)?.or(Some(128)))?;
        windows::qwen(keys, config, |layer, first| layer >= first)?;
        pooling_key(keys, config)
    },
    export: |model, exported| Some(windows::export_of_qwen(model, exported)),
    ..Family::DEFAULT
};

/// The first Qwen.
pub(super) static QWEN: Family = Family {
    classes: &["QWenLMHeadModel"],
    architecture: "qwen",
    model_type: "qwen",
    pre_tokenizers: &["qwen2"],
    prefix: "transformer.",
    names: &[&[
        ("wte", "token_embd"),
        ("ln_f", "output_norm"),
        ("lm_head", "output"),
        ("h.{}.ln_1", "blk.{}.attn_norm"),
        ("h.{}.attn.c_attn", "blk.{}.attn_qkv"),
        ("h.{}.attn.c_proj", "blk.{}.attn_output"),
        ("h.{}.ln_2", "blk.{}.ffn_norm"),
        ("h.{}.mlp.w2", "blk.{}.ffn_gate"),
        ("h.{}.mlp.w1", "blk.{}.ffn_up"),
        ("h.{}.mlp.c_proj", "blk.{}.ffn_down"),
    ]],
    fields: &[
        ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
        ("rope.freq_base", "rotary_emb_base"),
    ],
    expects: &[("no_bias", true)],
    keys: |config, keys| {
        keys.stated(config)?;
        // Programs want the epsilon under the name of its norms.
        keys.set("attention.layer_norm_rms_epsilon", hyper::layer_norm_epsilon(config)?);
        Ok(())
    },
    export: |_, exported| Some(exported.without(&["attention.layer_norm_rms_epsilon"])),
    ..Family::DEFAULT
};
