//! StarCoder (`gpt_bigcode`: GPT-2 with one head of keys and values) and StarCoder 2.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Name, Table};
use super::{Exported, Family, Target, exported, gpt2};
use crate::vocab;

pub(super) struct StarCoder;

impl Family for StarCoder {
    fn classes(&self) -> &'static [&'static str] {
        &["GPTBigCodeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "starcoder"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["starcoder", "gpt-2"]
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let width = hyper::width(config)?;
        let heads = hyper::head_count(config)?;
        let mut keys = Keys::new(self.architecture(), metadata);
        keys.set("context_length", config.require_u32(&["n_positions"], "the longest context")?);
        keys.set("embedding_length", width);
        keys.set("feed_forward_length", hyper::inner_width(config, width)?);
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("attention.head_count", heads);
        keys.set("attention.head_count_kv", if is_multi_query(config)? { 1 } else { heads });
        keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
        keys.file_type(file_type);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        let Some(mapped) = gpt2::mapped(name) else { return Ok(Target::Unknown) };
        // With keys and values for every head, all three are stored head by head.
        let step = if mapped.contains(".attn_qkv.") && !is_multi_query(config)? {
            Some(hyper::sort_heads(config)?)
        } else {
            None
        };
        Ok(Target::one(mapped, Vec::from_iter(step)))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let is_multi_query = exported::head_count_kv(model) == Some(1.0);
        let exported = gpt2::exported("GPTBigCodeForCausalLM", "gpt_bigcode");
        Some(exported.set("multi_query", is_multi_query))
    }
}

/// Whether all heads share one head of keys and values, as they do if nothing is said.
fn is_multi_query(config: &Config) -> Result<bool, Error> {
    Ok(config.bool("multi_query")?.unwrap_or(true))
}

pub(super) struct StarCoder2;

/// Where it differs from llama.
const NAMES: Table = &[
    ("model.layers.{}.mlp.c_fc", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.c_proj", "blk.{}.ffn_down"),
];

impl Family for StarCoder2 {
    fn classes(&self) -> &'static [&'static str] {
        &["Starcoder2ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "starcoder2"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["starcoder"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rope_theta", 10000.0);
        config.default("norm_epsilon", 1e-5);
        Ok(())
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        Keys::new(self.architecture(), metadata).stated(config, file_type)
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        let parsed = Name::parse(name);
        let mapped = parsed.and_then(|name| name.mapped(NAMES).or_else(|| name.mapped(LLAMA_LIKE)));
        Ok(Target::renamed(mapped))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let exported = Exported::new("Starcoder2ForCausalLM", "starcoder2", &[NAMES, LLAMA_LIKE])
            .fields(&[("attention.layer_norm_epsilon", "norm_epsilon")])
            .set("use_bias", exported::has(model, "blk.0.attn_q.bias"));
        Some(exported)
    }
}
