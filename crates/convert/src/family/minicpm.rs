//! MiniCPM: as llama, with scales.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::{Exported, Family, exported};
use crate::vocab;

pub(super) static MINICPM: Family = Family {
    classes: &["MiniCPMForCausalLM"],
    architecture: "minicpm",
    model_type: "minicpm",
    vocabulary: vocab::Kind::SentencePiece,
    keys,
    steps: hyper::llama_order,
    computed,
    export,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    let embedding = config.require_f64(&["scale_emb"], "the scale of embeddings")?;
    let depth = config.require_f64(&["scale_depth"], "the scale of residuals")?;
    let base = config.require_f64(&["dim_model_base"], "the width that scales go by")?;
    keys.set("embedding_scale", embedding as f32);
    let blocks = f64::from(hyper::block_count(config)?);
    keys.set("residual_scale", (depth / blocks.sqrt()) as f32);
    keys.set("logit_scale", (f64::from(hyper::width(config)?) / base) as f32);
    Ok(())
}

fn computed(config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
    hyper::longrope_factors(config, hyper::width(config)? / hyper::head_count(config)?)
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
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
    let mut exported = exported
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
