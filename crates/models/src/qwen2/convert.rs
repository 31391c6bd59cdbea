//! Conversion of Qwen2 and Qwen2.5, and of models with the same layers.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, VocabularyKind, hparams, sliding_window};

/// Names of the norms in KORMo.
const KORMO_NORMS: Table = &[
    ("model.layers.{}.pre_attention_layernorm", "blk.{}.attn_norm"),
    ("model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm"),
];

pub(crate) struct Qwen2;

/// Description of [`Qwen2`].
pub(crate) static QWEN2: Description = Description {
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
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    tensor_names: &[LLAMA_LIKE, KORMO_NORMS],
    ..Description::DECODER
};

impl Converter for Qwen2 {
    fn description(&self) -> &'static Description {
        &QWEN2
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
