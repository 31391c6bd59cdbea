//! Command R and Command R7B.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::{has, rotated_share};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, renamed};
use super::{Exported, Family, Target};
use crate::vocab;

pub(super) struct Cohere;

impl Family for Cohere {
    fn classes(&self) -> &'static [&'static str] {
        &["CohereForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "command-r"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["command-r"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        // The models were trained on contexts longer than the other field says.
        if let Some(length) = config.u32(&["model_max_length"])? {
            config.set("max_position_embeddings", length);
        }
        config.default("logit_scale", 0.0625);
        config.default("layer_norm_eps", 1e-5);
        config.default("rope_theta", 5e5);
        hyper::default_attention(config)
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new(self.architecture(), metadata);
        keys.stated(config, file_type)?;
        keys.set_f32("logit_scale", config.f32(&["logit_scale"])?);
        keys.set("rope.scaling.type", "none");
        Ok(())
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        // The embedding is the output matrix too.
        if name == "lm_head.weight" {
            return Ok(Target::Dropped);
        }
        Ok(Target::renamed(renamed(name, &[LLAMA_LIKE])))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let exported = Exported::new(self.classes()[0], "cohere", &[LLAMA_LIKE]).fields(FIELDS);
        Some(exported.set("use_qk_norm", has(model, "blk.0.attn_q_norm.weight")))
    }
}

/// Keys that both generations have.
const FIELDS: &[(&str, &str)] =
    &[("attention.layer_norm_epsilon", "layer_norm_eps"), ("logit_scale", "logit_scale")];

pub(super) struct Cohere2;

impl Family for Cohere2 {
    fn classes(&self) -> &'static [&'static str] {
        &["Cohere2ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "cohere2"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["command-r"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        config.set("head_dim", hyper::width(config)? / hyper::head_count(config)?);
        config.default("logit_scale", 0.0625);
        config.default("layer_norm_eps", 1e-5);
        config.default("sliding_window", 4096);
        hyper::default_attention(config)
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new(self.architecture(), metadata);
        keys.stated(config, file_type)?;
        keys.set_f32("logit_scale", config.f32(&["logit_scale"])?);
        keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
        keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
        let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 1.0)?;
        keys.set("rope.dimension_count", rotated);
        keys.set("rope.scaling.type", "none");
        Ok(())
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        if name == "lm_head.weight" {
            return Ok(Target::Dropped);
        }
        Ok(match renamed(name, &[LLAMA_LIKE]) {
            Some(_) if name.ends_with(".bias") => Target::DroppedIfZero,
            ours => Target::renamed(ours),
        })
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let exported = Exported::new(self.classes()[0], "cohere2", &[LLAMA_LIKE]).fields(FIELDS);
        // Of so many blocks one has no window.
        let exported = exported.set("sliding_window_pattern", 4);
        Some(exported.set_some("partial_rotary_factor", rotated_share(model)))
    }
}
