//! GPT-2.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{Name, Table};
use super::{Exported, Family, Target};
use crate::vocab;

pub(super) struct Gpt2;

/// Without the prefix `transformer.`, which the first uploads do not have.
const NAMES: Table = &[
    ("wte", "token_embd"),
    ("wpe", "position_embd"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
    ("h.{}.ln_1", "blk.{}.attn_norm"),
    ("h.{}.attn.c_attn", "blk.{}.attn_qkv"),
    ("h.{}.attn.c_proj", "blk.{}.attn_output"),
    ("h.{}.ln_2", "blk.{}.ffn_norm"),
    ("h.{}.mlp.c_fc", "blk.{}.ffn_up"),
    ("h.{}.mlp.c_proj", "blk.{}.ffn_down"),
];

impl Family for Gpt2 {
    fn classes(&self) -> &'static [&'static str] {
        &["GPT2LMHeadModel"]
    }

    fn architecture(&self) -> &'static str {
        "gpt2"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["gpt-2"]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        hyper::expect(config, "scale_attn_by_inverse_layer_idx", false)?;
        let width = hyper::width(config)?;
        let mut keys = Keys::new(self.architecture(), metadata);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set(
            "context_length",
            config.require_u32(&["n_ctx", "n_positions"], "the longest context, in tokens")?,
        );
        keys.set("embedding_length", width);
        keys.set("feed_forward_length", hyper::inner_width(config, width)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
        keys.file_type(file_type);
        Ok(())
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        let Some(mapped) = mapped(name) else { return Ok(Target::Unknown) };
        // The layers are convolutions of width 1, whose matrices are stored the other way round.
        let ends = [".c_attn.weight", ".c_proj.weight", ".c_fc.weight"];
        let transposed = ends.iter().any(|end| name.ends_with(end));
        Ok(Target::one(mapped, Vec::from_iter(transposed.then_some(Step::Transpose))))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        Some(exported("GPT2LMHeadModel", "gpt2"))
    }
}

/// What leads back to GPT-2 or a model that copied its names.
pub(super) fn exported(class: &'static str, model_type: &'static str) -> Exported {
    Exported::new(class, model_type, &[NAMES]).prefixed("transformer.").fields(&FIELDS)
}

/// What configurations of GPT-2 and of models like it call the hyper-parameters.
pub(super) const FIELDS: [(&str, &str); 6] = [
    ("block_count", "n_layer"),
    ("context_length", "n_positions"),
    ("embedding_length", "n_embd"),
    ("feed_forward_length", "n_inner"),
    ("attention.head_count", "n_head"),
    ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
];

/// Our name for a tensor of GPT-2 or of a model that copied its names.
pub(super) fn mapped(name: &str) -> Option<String> {
    Name::parse(name.strip_prefix("transformer.").unwrap_or(name))?.mapped(NAMES)
}
