//! Orion: as llama, with norms that take away the mean.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::Family;
use super::hyper::{self, Keys};
use crate::vocab;

pub(super) static ORION: Family = Family {
    classes: &["OrionForCausalLM"],
    architecture: "orion",
    model_type: "orion",
    vocabulary: vocab::Kind::SentencePiece,
    // The configuration calls it so, though the norms take away the mean.
    fields: &[("attention.layer_norm_epsilon", "rms_norm_eps")],
    expects: &[("attention_bias", false)],
    keys,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.file_type();
    keys.set("tensor_data_layout", "Meta AI original pth");
    let context = ["max_sequence_length", "max_position_embeddings", "model_max_length"];
    keys.set("context_length", config.require_u32(&context, "the longest context, in tokens")?);
    keys.set("embedding_length", hyper::width(config)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("feed_forward_length", hyper::feed_forward(config)?);
    keys.set("attention.head_count", hyper::head_count(config)?);
    keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
    let epsilon = config.require_f32(&["rms_norm_eps"], "what the norms add before they divide")?;
    keys.set("attention.layer_norm_epsilon", epsilon);
    keys.unusual_rope(config)
}
