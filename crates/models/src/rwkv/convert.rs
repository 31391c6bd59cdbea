//! Conversion of RWKV 4.
//!
//! llama.cpp does not support it. Keys are those of the GGUF specification. Tensors are named as in
//! rwkv6, but hold the values of the checkpoint: `time_mix_lerp_*` is the weight of the current
//! token (of the previous one in rwkv6), `time_mix_decay` the logarithm of the decay rate,
//! `time_mix_first` the bonus of the current token.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams};
use crate::schema::key;

/// Names that RWKV 4 and 6 share.
pub(crate) const NAMES: Table = &[
    ("rwkv.embeddings", "token_embd"),
    ("rwkv.blocks.0.pre_ln", "token_embd_norm"),
    ("rwkv.ln_out", "output_norm"),
    ("head", "output"),
    ("rwkv.blocks.{}.ln1", "blk.{}.attn_norm"),
    ("rwkv.blocks.{}.ln2", "blk.{}.attn_norm_2"),
    ("rwkv.blocks.{}.attention.key", "blk.{}.time_mix_key"),
    ("rwkv.blocks.{}.attention.value", "blk.{}.time_mix_value"),
    ("rwkv.blocks.{}.attention.receptance", "blk.{}.time_mix_receptance"),
    ("rwkv.blocks.{}.attention.output", "blk.{}.time_mix_output"),
    ("rwkv.blocks.{}.feed_forward.key", "blk.{}.channel_mix_key"),
    ("rwkv.blocks.{}.feed_forward.value", "blk.{}.channel_mix_value"),
    ("rwkv.blocks.{}.feed_forward.receptance", "blk.{}.channel_mix_receptance"),
];

/// Vectors with one element for each channel.
const VECTORS: [(&str, &str); 7] = [
    ("rwkv.blocks.{}.attention.time_decay", "time_mix_decay"),
    ("rwkv.blocks.{}.attention.time_first", "time_mix_first"),
    ("rwkv.blocks.{}.attention.time_mix_key", "time_mix_lerp_k"),
    ("rwkv.blocks.{}.attention.time_mix_value", "time_mix_lerp_v"),
    ("rwkv.blocks.{}.attention.time_mix_receptance", "time_mix_lerp_r"),
    ("rwkv.blocks.{}.feed_forward.time_mix_key", "channel_mix_lerp_k"),
    ("rwkv.blocks.{}.feed_forward.time_mix_receptance", "channel_mix_lerp_r"),
];

pub(crate) struct Rwkv4;

/// Description of [`Rwkv4`].
pub(crate) static RWKV4: Description = Description {
    classes: &["RwkvForCausalLM"],
    architecture: "rwkv",
    model_type: "rwkv",
    vocabulary: VocabularyKind::Rwkv,
    pre_tokenizers: &["gpt-2"],
    tensor_names: &[NAMES],
    config_fields: &[
        (key::CONTEXT_LENGTH, "context_length"),
        (key::EMBEDDING_LENGTH, "hidden_size"),
        (key::EMBEDDING_LENGTH, "attention_hidden_size"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
        (key::RESCALE_EVERY_N_LAYERS, "rescale_every"),
    ],
    ..Description::DECODER
};

impl Converter for Rwkv4 {
    fn description(&self) -> &'static Description {
        &RWKV4
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = embedding_length(config)?;
        let ffn_width = config.u32(&["intermediate_size"])?.unwrap_or(width.saturating_mul(4));
        keys.set(key::ARCHITECTURE_VERSION, 4u32);
        keys.set(
            key::CONTEXT_LENGTH,
            config.require_u32(&["context_length", "ctx_len"], "the context length")?,
        );
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, ffn_width);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        if let Some(layers) = config.u32(&["rescale_every"])? {
            keys.set(key::RESCALE_EVERY_N_LAYERS, layers);
        }
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (checkpoint_name, gguf_name) in VECTORS {
            if let Some(&[block]) = captures(checkpoint_name, name).as_deref() {
                let width = u64::from(embedding_length(config)?);
                // Interpolation weights have two leading dimensions of 1.
                let dims = if gguf_name.contains("_lerp_") { &[width, 1, 1][..] } else { &[width] };
                let reshape = Shape::new(dims).zip(Shape::new(&[width]));
                let reshape = reshape.map(|(from, to)| Step::Reshape { from, to });
                let name = format!("blk.{block}.{gguf_name}.weight");
                return Ok(Some(Mapping::one(name, Vec::from_iter(reshape))));
            }
        }
        Ok(None)
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns(VECTORS.map(|(name, _)| name)))
    }
}

/// Returns the embedding length, which must be that of attention too.
fn embedding_length(config: &Config) -> Result<u32, Error> {
    let width = hparams::width(config)?;
    match config.u32(&["attention_hidden_size"])? {
        Some(other) if other != width => {
            let what = format!("`attention_hidden_size` is {other}, `hidden_size` is {width}");
            Err(Error::input(
                "config-unsupported",
                config.path(),
                what,
                "only models with equal sizes can be converted",
            ))
        }
        _ => Ok(width),
    }
}
