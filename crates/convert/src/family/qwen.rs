//! Qwen2 and Qwen3, dense.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, renamed};
use super::{Exported, Family, Target};
use crate::vocab;

/// A generation of Qwen.
pub(super) struct Qwen {
    architecture: &'static str,
    class: &'static [&'static str],
    /// The width of a head where the configuration does not state it: `transformers` completes
    /// that of Qwen3 with 128, that of Qwen2 not at all.
    default_head_dim: Option<u32>,
}

pub(super) const QWEN2: Qwen =
    Qwen { architecture: "qwen2", class: &["Qwen2ForCausalLM"], default_head_dim: None };

pub(super) const QWEN3: Qwen =
    Qwen { architecture: "qwen3", class: &["Qwen3ForCausalLM"], default_head_dim: Some(128) };

impl Family for Qwen {
    fn classes(&self) -> &'static [&'static str] {
        self.class
    }

    fn architecture(&self) -> &'static str {
        self.architecture
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::SentencePieceElseBpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let head_dim = hyper::stated_head_dim(config)?.or(self.default_head_dim);
        Keys::new(self.architecture, metadata).decoder(config, head_dim, file_type)
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        Ok(Target::renamed(renamed(name, &[LLAMA_LIKE])))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        Some(Exported::new(self.class[0], self.architecture, &[LLAMA_LIKE]))
    }
}
