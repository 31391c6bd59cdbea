//! Phi 2, Phi 3 and Phi 4.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use super::hyper::{self, Keys, Rope};
use super::names::{LLAMA_LIKE, Table, renamed};
use super::{Exported, Family, Target, exported};
use crate::vocab;

pub(super) struct Phi2;

/// What differs from the usual names.
const PHI2: Table = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.{}.self_attn.dense", "blk.{}.attn_output"),
    ("model.layers.{}.mlp.fc1", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.fc2", "blk.{}.ffn_down"),
];

impl Family for Phi2 {
    fn classes(&self) -> &'static [&'static str] {
        &["PhiForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "phi2"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["phi-2"]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let width = hyper::width(config)?;
        let heads = hyper::head_count(config)?;
        let rotated = (hyper::rotated_share(config, 0.5)? * f64::from(width)) as u32 / heads;
        let epsilon = config.f32(&["layer_norm_epsilon", "layer_norm_eps"])?.unwrap_or(1e-5);
        let mut keys = Keys::new("phi2", metadata);
        keys.set("context_length", hyper::context_length(config)?);
        keys.set("embedding_length", width);
        keys.set("feed_forward_length", width.saturating_mul(4));
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("attention.head_count", heads);
        keys.set("attention.head_count_kv", heads);
        keys.set("attention.layer_norm_epsilon", epsilon);
        keys.set("rope.dimension_count", rotated);
        keys.file_type(file_type);
        keys.before_vocabulary("tokenizer.ggml.add_bos_token", false);
        keys.unusual_rope_base(config)
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        Ok(Target::renamed(renamed(name, &[PHI2, LLAMA_LIKE])))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let exported = Exported::new("PhiForCausalLM", "phi", &[PHI2, LLAMA_LIKE])
            .fields(&[("attention.layer_norm_epsilon", "layer_norm_eps")])
            .set_some("partial_rotary_factor", exported::rotated_share(model));
        Some(exported)
    }
}

pub(super) struct Phi3;

/// Queries, keys and values are one matrix here and in a GGUF, and so are gate and what it gates.
const PHI3: Table = &[
    ("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

impl Phi3 {
    /// Dimensions of a head that rotate.
    fn rotated(config: &Config) -> Result<u32, Error> {
        let width = f64::from(hyper::width(config)?);
        Ok((hyper::rotated_share(config, 1.0)? * width) as u32 / hyper::head_count(config)?)
    }
}

impl Family for Phi3 {
    fn classes(&self) -> &'static [&'static str] {
        &["Phi3ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "phi3"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Phi3
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["dbrx", "gpt-4o"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        config.default("original_max_position_embeddings", 4096);
        config.default("rope_theta", 1e4);
        Ok(())
    }

    /// By how much long contexts sharpen attention: the formula of `longrope` in transformers'
    /// `modeling_rope_utils.py`.
    fn first_metadata(&self, config: &Config, metadata: &mut Metadata) -> Result<(), Error> {
        if hyper::longrope_factors(config, Self::rotated(config)?)?.is_empty() {
            return Ok(());
        }
        let original = f64::from(Rope::of(config)?.original_context()?);
        let scale = f64::from(hyper::context_length(config)?) / original;
        let factor = if scale > 1.0 { (1.0 + scale.ln() / original.ln()).sqrt() } else { 1.0 };
        metadata.set("phi3.rope.scaling.attn_factor", factor as f32);
        Ok(())
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("phi3", metadata);
        keys.set("context_length", hyper::context_length(config)?);
        let original = Rope::of(config)?.original_context()? as u32;
        keys.set("rope.scaling.original_context_length", original);
        keys.set("embedding_length", hyper::width(config)?);
        keys.set("feed_forward_length", hyper::feed_forward(config)?);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        keys.set("attention.head_count_kv", hyper::head_count_kv(config)?);
        let epsilon = config.f32(&["rms_norm_eps"])?.unwrap_or(1e-5);
        keys.set("attention.layer_norm_rms_epsilon", epsilon);
        keys.set("rope.dimension_count", Self::rotated(config)?);
        keys.set_f32("rope.freq_base", Rope::of(config)?.base);
        keys.file_type(file_type);
        // Zero tells programs that this is Phi 4.
        keys.set("attention.sliding_window", config.u32(&["sliding_window"])?.unwrap_or(0));
        Ok(())
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        Ok(Target::renamed(renamed(name, &[PHI3, LLAMA_LIKE])))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let original = ("rope.scaling.original_context_length", "original_max_position_embeddings");
        let mut exported = Exported::new(self.classes()[0], "phi3", &[PHI3, LLAMA_LIKE])
            .fields(&[original])
            .set_some("partial_rotary_factor", exported::rotated_share(model));
        if exported::count(model, "attention.sliding_window") == Some(0) {
            exported = exported.set("sliding_window", Value::Null);
        }
        Some(exported)
    }

    fn computed(&self, config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
        hyper::longrope_factors(config, Self::rotated(config)?)
    }
}
