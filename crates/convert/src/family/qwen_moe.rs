//! Qwen2 and Qwen3 with experts.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::has;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, renamed};
use super::{Exported, Family, Target, experts};
use crate::vocab;

/// A generation of Qwen.
pub(super) struct QwenMoe {
    architecture: &'static str,
    class: &'static [&'static str],
}

pub(super) const QWEN2: QwenMoe =
    QwenMoe { architecture: "qwen2moe", class: &["Qwen2MoeForCausalLM"] };

pub(super) const QWEN3: QwenMoe =
    QwenMoe { architecture: "qwen3moe", class: &["Qwen3MoeForCausalLM"] };

/// What stands beside the experts. Only Qwen2 has one that is always asked.
const MIXTURE: Table = &[
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp"),
    ("model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
];

const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size"];

impl Family for QwenMoe {
    fn classes(&self) -> &'static [&'static str] {
        self.class
    }

    fn architecture(&self) -> &'static str {
        self.architecture
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        let (width, asked) = match self.architecture {
            "qwen2moe" => (1408, 4),
            _ => (768, 8),
        };
        config.default(EXPERT_WIDTH[0], width);
        config.default("num_experts_per_tok", asked);
        config.default("rms_norm_eps", 1e-6);
        if self.architecture == "qwen2moe" {
            config.default("shared_expert_intermediate_size", 5632);
        }
        hyper::default_attention(config)
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new(self.architecture, metadata);
        keys.stated(config, file_type)?;
        keys.set_u32("expert_feed_forward_length", config.u32(EXPERT_WIDTH)?);
        let shared = config.u32(&["shared_expert_intermediate_size"])?;
        keys.set_u32("expert_shared_feed_forward_length", shared);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        let width = || config.require_u32(EXPERT_WIDTH, "the feed-forward width of an expert");
        if let Some(target) = experts::target(config, name, width)? {
            return Ok(target);
        }
        Ok(Target::renamed(renamed(name, &[MIXTURE, LLAMA_LIKE])))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let is_second = self.architecture == QWEN2.architecture;
        let model_type = if is_second { "qwen2_moe" } else { "qwen3_moe" };
        let exported = Exported::new(self.class[0], model_type, &[MIXTURE, LLAMA_LIKE])
            .patterns(experts::one_by_one())
            .fields(&[("expert_shared_feed_forward_length", "shared_expert_intermediate_size")])
            // No key says it: programs do this with all models of the architecture.
            .set("norm_topk_prob", !is_second);
        Some(match is_second {
            true => exported.set("qkv_bias", has(model, "blk.0.attn_q.bias")),
            false => exported,
        })
    }
}
