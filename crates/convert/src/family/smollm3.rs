//! SmolLM3: as llama, but some blocks do not rotate.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, renamed};
use super::{Exported, Family, Target};
use crate::vocab;

pub(super) struct SmolLm3;

impl Family for SmolLm3 {
    fn classes(&self) -> &'static [&'static str] {
        &["SmolLM3ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "smollm3"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Llama
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["smaug-bpe", "llama-bpe"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rope_theta", 2e6);
        Ok(())
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("smollm3", metadata);
        keys.decoder(config, hyper::stated_head_dim(config)?, file_type)?;
        keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
        keys.set("rope.dimension_count", hyper::head_dim(config)?);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        hyper::llama_order(config, renamed(name, &[LLAMA_LIKE]))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        Some(Exported::new("SmolLM3ForCausalLM", "smollm3", &[LLAMA_LIKE]))
    }

    fn computed(&self, config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
        hyper::rope_freqs(config)
    }
}
