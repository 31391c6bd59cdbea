//! Nomic's BERT: rotary positions, and a gate in the feed-forward layer.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::bert::{embedding_keys, pooling_files, token_types};
use super::hyper::{self, Keys};
use super::names::{Name, Table};
use super::{Exported, Family, Target};
use crate::vocab;

pub(super) struct NomicBert;

const NAMES: Table = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("emb_ln", "token_embd_norm"),
    ("encoder.layers.{}.attn.Wqkv", "blk.{}.attn_qkv"),
    ("encoder.layers.{}.attn.out_proj", "blk.{}.attn_output"),
    ("encoder.layers.{}.norm1", "blk.{}.attn_output_norm"),
    ("encoder.layers.{}.mlp.fc11", "blk.{}.ffn_up"),
    ("encoder.layers.{}.mlp.fc12", "blk.{}.ffn_gate"),
    ("encoder.layers.{}.mlp.fc2", "blk.{}.ffn_down"),
    ("encoder.layers.{}.norm2", "blk.{}.layer_output_norm"),
];

/// What it was trained on where nothing is said. The configuration's `n_positions` is what the
/// positions can be stretched to.
const TRAINED: u32 = 2048;

impl Family for NomicBert {
    fn classes(&self) -> &'static [&'static str] {
        &["NomicBertModel"]
    }

    fn architecture(&self) -> &'static str {
        "nomic-bert"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Encoder
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &[]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        if config.u32(&["moe_every_n_layers"])?.is_some_and(|layers| layers > 0) {
            let what = "`moe_every_n_layers` asks for a mixture of experts";
            let help = "only the dense models of this class can be converted";
            return Err(Error::input_uncoded(config.path(), what, help));
        }
        for (field, value) in [
            ("causal", false),
            ("prenorm", false),
            ("rotary_emb_interleaved", false),
            ("qkv_proj_bias", false),
            ("mlp_fc1_bias", false),
            ("mlp_fc2_bias", false),
        ] {
            hyper::expect(config, field, value)?;
        }
        let positions = hyper::context_length(config)?;
        let trained = config.u32(&["max_trained_positions"])?.unwrap_or(TRAINED);
        let mut keys = Keys::new(self.architecture(), metadata);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("context_length", positions.min(trained));
        keys.set("embedding_length", hyper::width(config)?);
        keys.set("feed_forward_length", hyper::feed_forward(config)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        let base = config.require_f32(&["rope_theta", "rotary_emb_base"], "the base frequency")?;
        keys.set("rope.freq_base", base);
        keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
        keys.file_type(file_type);
        embedding_keys(&mut keys, config)
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        Ok(Target::renamed(Name::parse(name).and_then(|name| name.mapped(NAMES))))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        // Fields as `transformers` has them, which are those of BERT.
        let exported = Exported::new("NomicBertModel", "nomic_bert", &[NAMES])
            .fields(&[
                ("attention.layer_norm_epsilon", "layer_norm_eps"),
                ("context_length", "max_position_embeddings"),
                ("context_length", "max_trained_positions"),
            ])
            .set("type_vocab_size", token_types(model))
            .files(pooling_files(model));
        Some(exported)
    }
}
