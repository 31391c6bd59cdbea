//! Qwen2 and Qwen3, dense.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, VocabularyKind, hparams, sliding_window};

pub(crate) struct Qwen2;

impl Converter for Qwen2 {
    fn classes(&self) -> &'static [&'static str] {
        &[
            "Qwen2ForCausalLM",
            "Qwen2Model",
            "AudioFlamingo3ForConditionalGeneration",
            "DotsOCRForCausalLM",
            "KORMoForCausalLM",
            "Qwen2AudioForConditionalGeneration",
        ]
    }

    fn architecture(&self) -> &'static str {
        "qwen2"
    }

    fn model_type(&self) -> &'static str {
        "qwen2"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::SentencePieceElseBpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[LLAMA_LIKE, KORMO]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.decoder(config, hparams::stated_head_dim(config)?)?;
        sliding_window::qwen(keys, config, |layer, first| layer >= first)?;
        pooling_key(keys, config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(sliding_window::export_of_qwen(model, exported))
    }
}

/// What KORMo calls the norms.
const KORMO: Table = &[
    ("model.layers.{}.pre_attention_layernorm", "blk.{}.attn_norm"),
    ("model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm"),
];
