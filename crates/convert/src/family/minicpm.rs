//! MiniCPM: as llama, with scales.

use gguf::Metadata;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, renamed};
use super::{Family, Target};
use crate::Error;
use crate::config::Config;
use crate::vocab;

pub(super) struct MiniCpm;

impl Family for MiniCpm {
    fn classes(&self) -> &'static [&'static str] {
        &["MiniCPMForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "minicpm"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::SentencePiece
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &[]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata<'static>,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("minicpm", metadata);
        keys.stated(config, file_type)?;
        let embedding = config.require_f64(&["scale_emb"], "the scale of embeddings")?;
        let depth = config.require_f64(&["scale_depth"], "the scale of residuals")?;
        let base = config.require_f64(&["dim_model_base"], "the width that scales go by")?;
        keys.set("embedding_scale", embedding as f32);
        let blocks = f64::from(hyper::block_count(config)?);
        keys.set("residual_scale", (depth / blocks.sqrt()) as f32);
        keys.set("logit_scale", (f64::from(hyper::width(config)?) / base) as f32);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        hyper::llama_order(config, renamed(name, &[LLAMA_LIKE]))
    }

    fn computed(&self, config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
        hyper::longrope_factors(config, hyper::width(config)? / hyper::head_count(config)?)
    }
}
