//! OLMo 1, 2 and 3.

use gguf::{Array, Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, renamed};
use super::{Exported, Family, Target};
use crate::vocab;

/// The first generation, whose norms have no weights.
pub(super) struct Olmo;

impl Family for Olmo {
    fn classes(&self) -> &'static [&'static str] {
        &["OlmoForCausalLM", "OLMoForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "olmo"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["olmo"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        hyper::default_attention(config)
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("olmo", metadata);
        keys.stated(config, file_type)?;
        keys.set("attention.layer_norm_epsilon", 1e-5f32);
        keys.set_f32("attention.clamp_kqv", config.f32(&["clip_qkv"])?);
        Ok(())
    }

    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error> {
        hyper::llama_order(config, renamed(name, &[LLAMA_LIKE]))
    }

    fn exported(&self, _model: &Model) -> Option<Exported> {
        let exported = Exported::new(self.classes()[0], "olmo", &[LLAMA_LIKE]);
        Some(exported.fields(&[("attention.clamp_kqv", "clip_qkv")]))
    }
}

/// The later generations, whose norms follow what they normalize.
pub(super) struct Olmo2;

const NORMS: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"),
];

impl Family for Olmo2 {
    fn classes(&self) -> &'static [&'static str] {
        &["Olmo2ForCausalLM", OLMO3]
    }

    fn architecture(&self) -> &'static str {
        "olmo2"
    }

    fn vocabulary(&self) -> vocab::Kind {
        vocab::Kind::Bpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["dbrx"]
    }

    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        if config.class()? == OLMO3 {
            config.default("sliding_window", 4096);
            config.default("rope_theta", 5e5);
            config.default("rope_local_base_freq", 5e5);
        }
        hyper::default_attention(config)
    }

    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("olmo2", metadata);
        keys.stated(config, file_type)?;
        if let Some(window) = config.u32(&["sliding_window"])? {
            keys.set("attention.sliding_window", window);
            keys.set("attention.sliding_window_pattern", Array::from(&windows(config)?[..]));
        }
        Ok(())
    }

    fn tensor(&self, _config: &Config, name: &str) -> Result<Target, Error> {
        Ok(Target::renamed(renamed(name, &[NORMS, LLAMA_LIKE])))
    }

    fn exported(&self, model: &Model) -> Option<Exported> {
        let metadata = model.metadata();
        if metadata.get("olmo2.attention.sliding_window").is_none() {
            return Some(Exported::new(self.classes()[0], "olmo2", &[NORMS, LLAMA_LIKE]));
        }
        let exported = Exported::new(OLMO3, "olmo3", &[NORMS, LLAMA_LIKE])
            .fields(&[("rope.freq_base_swa", "rope_local_base_freq")]);
        let windows = metadata.array("olmo2.attention.sliding_window_pattern");
        Some(match windows {
            Some(windows) => {
                let kind = |has_window: gguf::Value| match has_window.to_bool() {
                    Some(false) => "full_attention",
                    _ => "sliding_attention",
                };
                exported.set("layer_types", windows.iter().map(kind).collect::<Vec<_>>())
            }
            None => exported,
        })
    }
}

const OLMO3: &str = "Olmo3ForCausalLM";

/// Which blocks have a window: as listed, or three of four.
fn windows(config: &Config) -> Result<Vec<bool>, Error> {
    if let Some((_, kinds)) = config.find(&["layer_types"]) {
        let kinds = kinds.as_array().into_iter().flatten();
        return Ok(kinds.map(|kind| kind == "sliding_attention").collect());
    }
    Ok((0..hyper::block_count(config)?).map(|block| block % 4 != 3).collect())
}
