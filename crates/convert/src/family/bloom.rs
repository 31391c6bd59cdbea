//! Bloom.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{Name, Table};
use super::{Exported, Family, Target};
use crate::vocab;

pub(super) struct Bloom;

/// Without the prefix `transformer.`, which the first uploads do not have.
const NAMES: Table = &[
    ("word_embeddings", "token_embd"),
    ("word_embeddings_layernorm", "token_embd_norm"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
    ("h.{}.input_layernorm", "blk.{}.attn_norm"),
    ("h.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("h.{}.self_attention.dense", "blk.{}.attn_output"),
    ("h.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

impl Family for Bloom {
    fn classes(&self) -> &'static [&'static str] {
        &["BloomForCausalLM", "BloomModel"]
    }

    fn architecture(&self) -> &'static str {
        "bloom"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["bloom"]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        hyper::expect(config, "apply_residual_connection_post_layernorm", false)?;
        let width = hyper::width(config)?;
        let heads = hyper::head_count(config)?;
        let mut keys = Keys::new(self.architecture(), metadata);
        // ALiBi knows no longest context; without a statement the width stands in.
        keys.set("context_length", config.u32(&["seq_length"])?.unwrap_or(width));
        keys.set("embedding_length", width);
        keys.set("feed_forward_length", hyper::inner_width(config, width)?);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("attention.head_count", heads);
        keys.set("attention.head_count_kv", heads);
        keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
        keys.file_type(file_type);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        let plain = name.strip_prefix("transformer.").unwrap_or(name);
        let mapped = Name::parse(plain).and_then(|name| name.mapped(NAMES));
        let Some(mapped) = mapped else { return Ok(Target::Unknown) };
        let step = mapped.contains(".attn_qkv.").then(|| hyper::sort_heads(config)).transpose()?;
        Ok(Target::one(mapped, Vec::from_iter(step)))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        let exported = Exported::new("BloomForCausalLM", "bloom", &[NAMES])
            .prefixed("transformer.")
            .fields(&[
                ("block_count", "n_layer"),
                ("context_length", "seq_length"),
                ("feed_forward_length", "n_inner"),
                ("attention.head_count", "n_head"),
                ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
            ])
            .without(&["attention.head_count_kv"]);
        Some(exported)
    }
}
