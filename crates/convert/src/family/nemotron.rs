//! Nemotron and Minitron: norms that are stored as the difference from 1, feed-forward without a gate.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use super::hyper::{self, Keys, Rope};
use super::{Exported, Family, exported};
use crate::vocab;

pub(super) static NEMOTRON: Family = Family {
    classes: &["NemotronForCausalLM"],
    architecture: "nemotron",
    model_type: "nemotron",
    vocabulary: vocab::Kind::Nemotron,
    fields: &[("attention.layer_norm_epsilon", "norm_eps")],
    expects: &[("mlp_bias", false)],
    complete: |config| {
        config.default("norm_eps", 1e-5);
        let head_dim = hyper::head_dim(config)?;
        config.default("head_dim", head_dim);
        hyper::default_attention(config)
    },
    keys,
    steps,
    export,
    ..Family::DEFAULT
};

const EPSILON: &[&str] = &["layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"];

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.vocab_size(config)?;
    keys.set_f32("attention.layer_norm_epsilon", config.f32(EPSILON)?);
    let rotated = hyper::rotated_dims(config, hyper::width(config)?, 0.5)?;
    keys.set("rope.dimension_count", rotated / hyper::head_count(config)?.max(1));
    let factor = Rope::of(config)?.f64("factor")?.or(config.f64(&["factor"])?);
    match factor {
        Some(factor) => {
            keys.set("rope.scaling.type", "linear");
            keys.set("rope.scaling.factor", factor as f32);
        }
        None => keys.set("rope.scaling.type", "none"),
    }
    Ok(())
}

fn steps(_: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let is_norm = name.ends_with("norm.weight");
    Ok(Vec::from_iter(is_norm.then_some(Step::Map(Function::PlusOne))))
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = exported
        .without(&["attention.layer_norm_rms_epsilon"])
        .set_some("partial_rotary_factor", exported::rotated_share(model));
    Some(exported)
}
