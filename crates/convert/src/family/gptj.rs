//! GPT-J.
//!
//! The official programs neither write nor run it. Keys are those of the specification. Tensors
//! are named as in phi2, which has the same layout. Queries and keys stay as they are, for the
//! rotation of neighbours.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::gpt2::FIELDS;
use super::hyper::{self, Keys};
use super::names::{Name, Table};
use super::{Exported, Family, Target};
use crate::vocab;

pub(super) struct GptJ;

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.q_proj", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.k_proj", "blk.{}.attn_k"),
    ("transformer.h.{}.attn.v_proj", "blk.{}.attn_v"),
    ("transformer.h.{}.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.mlp.fc_in", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.fc_out", "blk.{}.ffn_down"),
];

impl Family for GptJ {
    fn classes(&self) -> &'static [&'static str] {
        &["GPTJForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "gptj"
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
        hyper::expect(config, "rotary", true)?;
        let width = hyper::width(config)?;
        let rotated = config.require_u32(&["rotary_dim"], "the rotated dimensions of a head")?;
        let mut keys = Keys::new(self.architecture(), metadata);
        keys.set("context_length", hyper::context_length(config)?);
        keys.set("embedding_length", width);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("feed_forward_length", hyper::inner_width(config, width)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
        keys.set("rope.dimension_count", rotated);
        keys.file_type(file_type);
        Ok(())
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        Ok(Target::renamed(Name::parse(name).and_then(|name| name.mapped(NAMES))))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        let exported = Exported::new("GPTJForCausalLM", "gptj", &[NAMES]).fields(&FIELDS);
        Some(exported.fields(&[("rope.dimension_count", "rotary_dim")]))
    }
}
