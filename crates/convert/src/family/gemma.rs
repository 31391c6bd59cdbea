//! Gemma 1, 2 and 3, as text models.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use super::exported::{self, count, ratio};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, renamed};
use super::{Exported, Family, Target};
use crate::vocab;

/// A generation of Gemma.
pub(super) struct Gemma {
    generation: u32,
    architecture: &'static str,
    classes: &'static [&'static str],
}

pub(super) const GEMMA: Gemma =
    Gemma { generation: 1, architecture: "gemma", classes: &["GemmaForCausalLM"] };

pub(super) const GEMMA2: Gemma =
    Gemma { generation: 2, architecture: "gemma2", classes: &["Gemma2ForCausalLM"] };

pub(super) const GEMMA3: Gemma = Gemma {
    generation: 3,
    architecture: "gemma3",
    classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
};

/// Since the second generation, norms stand before and after attention and feed-forward.
const NORMS: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

impl Family for Gemma {
    fn classes(&self) -> &'static [&'static str] {
        self.classes
    }

    fn architecture(&self) -> &'static str {
        self.architecture
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Gemma { first: self.generation == 1 }
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &[]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 256);
        config.default("rms_norm_eps", 1e-6);
        match self.generation {
            1 => config.default("max_position_embeddings", 8192),
            2 => {
                config.default("max_position_embeddings", 8192);
                config.default("attn_logit_softcapping", 50.0);
                config.default("final_logit_softcapping", 30.0);
                config.default("sliding_window", 4096);
            }
            _ => {
                // The multimodal models state little of their text model.
                config.default("max_position_embeddings", 131_072);
                config.default("num_attention_heads", 8);
                config.default("num_key_value_heads", 4);
                config.default("sliding_window", 4096);
                config.default("rope_theta", 1e6);
                config.default("rope_local_base_freq", 1e4);
            }
        }
        Ok(())
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let head_dim = config.require_u32(&["head_dim"], "the width of a head")?;
        let mut keys = Keys::new(self.architecture, metadata);
        if self.generation == 3 {
            keys.stated(config, file_type)?;
            if let Some(cap) = config.f32(&["final_logit_softcapping"])?.filter(|&cap| cap != 0.0) {
                keys.set("final_logit_softcapping", cap);
            }
            if config.u32(&["sliding_window_pattern"])? != Some(1) {
                keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
            }
            return Ok(());
        }
        keys.set("context_length", hyper::context_length(config)?);
        keys.set("embedding_length", hyper::width(config)?);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("feed_forward_length", hyper::feed_forward(config)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
        keys.set_f32("attention.layer_norm_rms_epsilon", config.f32(&["rms_norm_eps"])?);
        keys.set("attention.key_length", head_dim);
        keys.set("attention.value_length", head_dim);
        keys.file_type(file_type);
        if self.generation == 2 {
            for cap in ["attn_logit_softcapping", "final_logit_softcapping"] {
                keys.set_f32(cap, config.f32(&[cap])?);
            }
            keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
        }
        keys.unusual_rope_base(config)
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        // The embedding is the output matrix too; some checkpoints hold it twice.
        if matches!(name, "lm_head.weight" | "model.lm_head.weight") {
            return Ok(Target::Dropped);
        }
        let Some(ours) = renamed(name, self.tables()) else { return Ok(Target::Unknown) };
        let is_norm = name.ends_with("norm.weight");
        let step = is_norm.then_some(Step::Map(Function::PlusOne));
        Ok(Target::one(ours, Vec::from_iter(step)))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let number = |key| count(model, key);
        let model_type = if self.generation == 3 { "gemma3_text" } else { self.architecture };
        let exported = Exported::new(self.classes[0], model_type, self.tables());
        if self.generation == 1 {
            return Some(exported);
        }
        // What attention is scaled by has no key: programs tell the models of 27B, where it is not
        // the width of a head, by their number of blocks.
        let scalar = match (self.generation, number("block_count")) {
            (2, Some(46)) | (3, Some(62)) => {
                ratio(model, "embedding_length", "attention.head_count")
            }
            _ => exported::head_dim(model).map(Value::from),
        };
        let exported = exported.set_some("query_pre_attn_scalar", scalar).fields(&[
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("rope.freq_base_swa", "rope_local_base_freq"),
        ]);
        if self.generation == 2 {
            return Some(exported);
        }
        // Of so many blocks one has no window.
        let pattern = match number("attention.sliding_window") {
            Some(_) => number("attention.sliding_window_pattern").unwrap_or(6),
            None => 1,
        };
        Some(exported.set("sliding_window_pattern", pattern))
    }
}

impl Gemma {
    fn tables(&self) -> &'static [Table] {
        if self.generation == 1 { &[LLAMA_LIKE] } else { &[NORMS, LLAMA_LIKE] }
    }
}
