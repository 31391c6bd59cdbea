//! Conversion of MiniMax-M2, and the keys that M3 shares.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, defaults, hparams, moe, rope};
use crate::llama::convert::{ROUTER_NAMES, map_mixtral_expert, mixtral_expert_patterns};
use crate::schema::key;

/// Selection bias of the router.
pub(crate) const ROUTER_BIAS: &str = "model.layers.{}.block_sparse_moe.e_score_correction_bias";

pub(crate) struct MinimaxM2;

/// Description of [`MinimaxM2`].
pub(crate) static MINIMAX_M2: Description = Description {
    classes: &["MiniMaxM2ForCausalLM"],
    architecture: "minimax-m2",
    model_type: "minimax_m2",
    pre_tokenizers: &["minimax-m2"],
    tensor_names: &[ROUTER_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "num_local_experts"),
        (key::ROPE_DIMENSION_COUNT, "rotary_dim"),
    ],
    ..Description::DECODER
};

impl Converter for MinimaxM2 {
    fn description(&self) -> &'static Description {
        &MINIMAX_M2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(bias) = moe::router_bias(ROUTER_BIAS, name) {
            return Ok(Some(bias));
        }
        map_mixtral_expert(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported
            .patterns(mixtral_expert_patterns())
            .patterns([ROUTER_BIAS])
            .without(&[key::EXPERT_FEED_FORWARD_LENGTH]);
        Some(match count(model, key::EXPERT_GATING_FUNC) {
            Some(2) => exported.set("scoring_func", "sigmoid"),
            _ => exported,
        })
    }
}

/// Writes the keys of MiniMax-M2 and M3.
pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set(key::EXPERT_FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
    let rotary_dims = match config.u32(&["rotary_dim"])? {
        Some(dims) => dims,
        None => rope::rotated_dims(config, hparams::head_dim(config)?, 1.0)?,
    };
    keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
    Ok(())
}
