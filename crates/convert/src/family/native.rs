//! Mistral's and Meta's own form: `params.json` and `consolidated.*`, with rows of queries and keys in
//! the order of GGUF.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::Family;
use super::hyper::{self, Keys};
use super::names::Table;
use crate::vocab;

const NAMES: Table = &[
    ("tok_embeddings", "token_embd"),
    ("model.norm", "output_norm"),
    ("output", "output"),
    ("model.layers.{}.attention_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.attention.wq", "blk.{}.attn_q"),
    ("model.layers.{}.attention.wk", "blk.{}.attn_k"),
    ("model.layers.{}.attention.wv", "blk.{}.attn_v"),
    ("model.layers.{}.attention.wo", "blk.{}.attn_output"),
    ("model.layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.w2", "blk.{}.ffn_down"),
    ("model.layers.{}.feed_forward.w3", "blk.{}.ffn_up"),
];

/// The parts of a model that sees.
const OTHER_PARTS: [&str; 4] =
    ["vision_encoder.", "vision_language_adapter.", "patch_merger.", "pre_mm_projector_norm."];

/// What both have in common.
const NATIVE: Family = Family {
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["tekken"],
    names: &[NAMES],
    keys,
    leaves_out: |_, name| {
        name == "rope.freqs" || OTHER_PARTS.iter().any(|part| name.starts_with(part))
    },
    ..Family::DEFAULT
};

/// All but the last generation.
static LLAMA: Family = Family { architecture: "llama", ..NATIVE };

/// Whose attention sharpens on long texts.
static MISTRAL3: Family = Family { architecture: "mistral3", ..NATIVE };

/// The family of a model in this form; none if its configuration is another.
pub(crate) fn find(config: &Config) -> Result<Option<&'static Family>, Error> {
    if !config.is_of_params() {
        return Ok(None);
    }
    if config.find(&["moe"]).is_some() {
        let what = "has a field `moe`: models of experts are not known in this form";
        let help = "convert the model's form of Hugging Face, which has a `config.json`";
        return Err(Error::input("config-unsupported", config.path(), what, help));
    }
    if config.bool("use_scaled_rope")? == Some(true) {
        let what = "has `use_scaled_rope`, and does not say by how much positions are stretched";
        let help = "convert the model's form of Hugging Face, which says it";
        return Err(Error::input("config-unsupported", config.path(), what, help));
    }
    let sharpens = config.find(&[SHARPENING]).is_some();
    Ok(Some(if sharpens { &MISTRAL3 } else { &LLAMA }))
}

const SHARPENING: &str = "llama_4_scaling";

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let head_dim = hyper::head_dim(config)?;
    keys.decoder(config, Some(head_dim))?;
    keys.set("rope.dimension_count", head_dim);
    if config.find(&["yarn"]).is_some() {
        let yarn = config.part("yarn");
        let number = |field| yarn.require_f32(&[field], "how positions are stretched (`yarn`)");
        let original = yarn.require_u32(&["original_max_position_embeddings"], "in `yarn`")?;
        let applies = yarn.bool("apply_scale")?.unwrap_or(true);
        keys.set("rope.scaling.type", "yarn");
        keys.set("rope.scaling.factor", number("factor")?);
        keys.set("rope.scaling.yarn_beta_fast", number("beta")?);
        keys.set("rope.scaling.yarn_beta_slow", number("alpha")?);
        keys.set("rope.scaling.yarn_log_multiplier", if applies { 0.0f32 } else { 1.0 });
        keys.set("rope.scaling.original_context_length", original);
    }
    if config.find(&[SHARPENING]).is_some() {
        let beta = config.part(SHARPENING).require_f32(&["beta"], "in `llama_4_scaling`")?;
        keys.set("attention.temperature_scale", beta);
    }
    Ok(())
}
