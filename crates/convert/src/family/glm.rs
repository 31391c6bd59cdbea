//! GLM 4.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::{has, rotated_share};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, renamed};
use super::{Exported, Family, Target};
use crate::vocab;

pub(super) struct Glm4;

/// Norms stand before and after attention and feed-forward; gate and what it gates are one matrix.
const NAMES: Table = &[
    ("model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

impl Family for Glm4 {
    fn classes(&self) -> &'static [&'static str] {
        &["Glm4ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "glm4"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Glm4
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["glm4", "chatglm-bpe"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 128);
        config.default("rms_norm_eps", 1.5625e-7);
        hyper::default_attention(config)
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("glm4", metadata);
        keys.stated(config, file_type)?;
        let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 0.5)?;
        keys.set("rope.dimension_count", rotated);
        Ok(())
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        Ok(Target::renamed(renamed(name, &[NAMES, LLAMA_LIKE])))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let exported = Exported::new(self.classes()[0], "glm4", &[NAMES, LLAMA_LIKE])
            .set_some("partial_rotary_factor", rotated_share(model))
            .set("attention_bias", has(model, "blk.0.attn_q.bias"));
        Some(exported)
    }
}
