//! Orion: as llama, with norms that take away the mean.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, VocabularyKind, hparams};

pub(crate) struct Orion;

impl Converter for Orion {
    fn classes(&self) -> &'static [&'static str] {
        &["OrionForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "orion"
    }

    fn model_type(&self) -> &'static str {
        "orion"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::SentencePiece
    }

    // The configuration calls it so, though the norms take away the mean.
    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[("attention.layer_norm_epsilon", "rms_norm_eps")]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", false)]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.file_type();
        keys.set("tensor_data_layout", "Meta AI original pth");
        let context = ["max_sequence_length", "max_position_embeddings", "model_max_length"];
        keys.set("context_length", config.require_u32(&context, "the longest context, in tokens")?);
        keys.set("embedding_length", hparams::width(config)?);
        keys.set("block_count", hparams::block_count(config)?);
        keys.set("feed_forward_length", hparams::feed_forward(config)?);
        keys.set("attention.head_count", hparams::head_count(config)?);
        keys.set("attention.head_count_kv", hparams::head_count_kv(config)?);
        let epsilon =
            config.require_f32(&["rms_norm_eps"], "what the norms add before they divide")?;
        keys.set("attention.layer_norm_epsilon", epsilon);
        keys.unusual_rope(config)
    }
}
