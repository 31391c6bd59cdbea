//! Granite, dense and with experts.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::experts::halves;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, captures, renamed};
use super::{Exported, Family, Target, exported};
use crate::vocab;

/// One of the two.
pub(super) struct Granite {
    architecture: &'static str,
    classes: &'static [&'static str],
}

pub(super) const GRANITE: Granite =
    Granite { architecture: "granite", classes: &["GraniteForCausalLM"] };

pub(super) const GRANITE_MOE: Granite = Granite {
    architecture: "granitemoe",
    classes: &["GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"],
};

/// The experts, all in one tensor, and the one that is always asked.
const MIXTURE: Table = &[
    ("model.layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps"),
    ("model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp"),
];

/// Gates and what they gate, of all experts and of the one that is always asked.
const EXPERTS: &str = "model.layers.{}.block_sparse_moe.input_linear.weight";
const SHARED: &str = "model.layers.{}.shared_mlp.input_linear.weight";

/// By how much parts of the model scale: key and field.
const SCALES: [(&str, &str); 4] = [
    ("attention.scale", "attention_multiplier"),
    ("embedding_scale", "embedding_multiplier"),
    ("residual_scale", "residual_multiplier"),
    ("logit_scale", "logits_scaling"),
];

impl Family for Granite {
    fn classes(&self) -> &'static [&'static str] {
        self.classes
    }

    fn architecture(&self) -> &'static str {
        self.architecture
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Llama
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["refact", "starcoder", "dbrx"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        for (_, field) in SCALES {
            config.default(field, 1.0);
        }
        if self.architecture == GRANITE_MOE.architecture {
            config.default("num_local_experts", 8);
            config.default("num_experts_per_tok", 2);
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
        keys.decoder(config, None, file_type)?;
        keys.set("vocab_size", config.require_u32(&["vocab_size"], "the number of tokens")?);
        let head_dim = hyper::width(config)? / hyper::head_count(config)?;
        keys.set("rope.dimension_count", head_dim);
        for (key, field) in SCALES {
            keys.set_f32(key, config.f32(&[field])?.filter(|&scale| scale != 0.0));
        }
        let shared = config.u32(&["shared_intermediate_size"])?.filter(|&width| width != 0);
        keys.set_u32("expert_shared_feed_forward_length", shared);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        if let Some(&[block]) = captures(EXPERTS, name).as_deref() {
            let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}_exps"));
            let count = hyper::expert_count(config)?;
            return Ok(halves(names, count, hyper::feed_forward(config)?));
        }
        // Without experts, the one that is always asked is all there is.
        let suffix = match config.u32(&["num_local_experts"])? {
            None | Some(0) => "",
            Some(_) => "_shexp",
        };
        if let Some(&[block]) = captures(SHARED, name).as_deref() {
            let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}{suffix}"));
            let width = config.require_u32(&["shared_intermediate_size"], "its width")?;
            return Ok(halves(names, 1, width));
        }
        let ours = renamed(name, &[MIXTURE, LLAMA_LIKE]);
        let ours = ours.map(|ours| ours.replace("_shexp", suffix));
        hyper::llama_order(config, ours)
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        if self.architecture == GRANITE.architecture {
            let exported = Exported::new(self.classes[0], "granite", &[LLAMA_LIKE]);
            return Some(exported.fields(&SCALES));
        }
        let count = |key| exported::count(model, key).filter(|&count| count != 0);
        let shared = "expert_shared_feed_forward_length";
        let has_shared = count(shared).is_some();
        let (class, model_type) = match has_shared {
            true => (self.classes[1], "granitemoeshared"),
            false => (self.classes[0], "granitemoe"),
        };
        let mut exported = Exported::new(class, model_type, &[MIXTURE, LLAMA_LIKE])
            .patterns(count("expert_count").is_some().then_some(EXPERTS))
            .patterns(has_shared.then_some(SHARED))
            .fields(&SCALES)
            .fields(&[("expert_count", "num_local_experts"), (shared, "shared_intermediate_size")]);
        // What is always asked bears the usual names only in dense models.
        exported.patterns.retain(|name| !name.contains(".mlp."));
        Some(exported)
    }

    fn computed(&self, config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
        hyper::rope_freqs(config)
    }
}
