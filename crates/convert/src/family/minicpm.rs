//! MiniCPM: as llama, with scales.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, renamed};
use super::{Exported, Family, Target, exported};
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
        metadata: &mut Metadata,
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

    fn exported(&self, model: &Model) -> Option<Exported> {
        let number = |key| exported::number(model, key);
        let blocks = number("block_count")?.sqrt();
        let depth = number("residual_scale").map(|scale| {
            exported::shortest(scale * blocks, |depth| f64::from((depth / blocks) as f32) == scale)
        });
        let width = number("embedding_length")?;
        let base = number("logit_scale").map(|scale| {
            exported::shortest(width / scale, |base| f64::from((width / base) as f32) == scale)
        });
        // Files of before these keys are run with the numbers of the first models.
        let mut exported = Exported::new("MiniCPMForCausalLM", "minicpm", &[LLAMA_LIKE])
            .set("scale_emb", exported::whole(number("embedding_scale").unwrap_or(12.0)))
            .set("scale_depth", depth.unwrap_or(1.4))
            .set("dim_model_base", exported::whole(base.unwrap_or(256.0)));
        let context = exported::count(model, "context_length");
        if let (Some(context), true) = (context, exported::has(model, "rope_factors_long.weight")) {
            // No key has it, so programs take the longest context for the original one.
            exported = exported.scaling("original_max_position_embeddings", context);
        }
        Some(exported)
    }

    fn computed(&self, config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
        hyper::longrope_factors(config, hyper::width(config)? / hyper::head_count(config)?)
    }
}
