//! MiniMax M2: experts in every layer, norms of all heads together.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::exported::count;
use super::hyper::{self, Keys};
use super::llama::{EXPERT_NAMES, experts_of_mixtral, patterns_of_mixtral};
use super::names::{LLAMA_LIKE, captures};
use super::{Family, Mapping};

const ROUTER_BIAS: &str = "model.layers.{}.block_sparse_moe.e_score_correction_bias";

pub(super) static MINIMAX_M2: Family = Family {
    classes: &["MiniMaxM2ForCausalLM"],
    architecture: "minimax-m2",
    model_type: "minimax_m2",
    pre_tokenizers: &["minimax-m2"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    fields: &[("expert_count", "num_local_experts"), ("rope.dimension_count", "rotary_dim")],
    complete: |config| {
        config.default("rms_norm_eps", 1e-6);
        hyper::default_attention(config)
    },
    keys,
    special,
    export: |model, exported| {
        let exported = exported
            .patterns(patterns_of_mixtral())
            .patterns([ROUTER_BIAS])
            .without(&["expert_feed_forward_length"]);
        Some(match count(model, "expert_gating_func") {
            Some(2) => exported.set("scoring_func", "sigmoid"),
            _ => exported,
        })
    },
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set("expert_feed_forward_length", hyper::feed_forward(config)?);
    let rotated = match config.u32(&["rotary_dim"])? {
        Some(rotated) => rotated,
        None => hyper::rotated_dims(config, hyper::head_dim(config)?, 1.0)?,
    };
    keys.set("rope.dimension_count", rotated);
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(&[block]) = captures(ROUTER_BIAS, name).as_deref() {
        return Ok(Some(Mapping::one(format!("blk.{block}.exp_probs_b.bias"), [])));
    }
    experts_of_mixtral(config, name)
}
