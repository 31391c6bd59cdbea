//! Conversion of Orion. config.json calls the epsilon of the layer norms `rms_norm_eps`.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, VocabularyKind, hparams};
use crate::schema::key;

pub(crate) struct Orion;

/// Description of [`Orion`].
pub(crate) static ORION: Description = Description {
    classes: &["OrionForCausalLM"],
    architecture: "orion",
    model_type: "orion",
    vocabulary: VocabularyKind::SentencePiece,
    // The field has this name, though the model has layer norms.
    config_fields: &[(key::ATTENTION_LAYER_NORM_EPSILON, "rms_norm_eps")],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Orion {
    fn description(&self) -> &'static Description {
        &ORION
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.file_type();
        keys.set(key::TENSOR_DATA_LAYOUT, "Meta AI original pth");
        let context = ["max_sequence_length", "max_position_embeddings", "model_max_length"];
        keys.set(key::CONTEXT_LENGTH, config.require_u32(&context, "the context length")?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
        let epsilon = config.require_f32(&["rms_norm_eps"], "epsilon of the norms")?;
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, epsilon);
        keys.rope_unless_default(config)
    }
}
