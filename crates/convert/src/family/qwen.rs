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
