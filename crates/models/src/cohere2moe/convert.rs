//! Conversion of `Cohere2MoeForCausalLM`. `intermediate_size` is that of an expert,
//! `prefix_dense_intermediate_size` that of dense layers. Biases are dropped if they are zero.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, renamed};
use crate::convert::{
    Converter, Description, Exported, Mapping, defaults, hparams, moe, mtp, sliding_window,
};
use crate::schema::key;

const TABLES: &[Table] = &[moe::BESIDE_SHARED, mtp::NAMES, LLAMA_LIKE];

const MLP_LAYER_TYPES: &str = "mlp_layer_types";

const FIRST_K_DENSE: &str = "first_k_dense_replace";

const SHARED_EXPERT_COMBINATION: &str = "shared_expert_combination_strategy";

pub(crate) struct Cohere2Moe;

/// Description of [`Cohere2Moe`].
pub(crate) static COHERE2_MOE: Description = Description {
    classes: &["Cohere2MoeForCausalLM"],
    architecture: "cohere2moe",
    model_type: "cohere2_moe",
    pre_tokenizers: &["command-r", "tiny_aya"],
    tensor_names: TABLES,
    config_fields: &[
        (key::EXPERT_FEED_FORWARD_LENGTH, "intermediate_size"),
        (key::FEED_FORWARD_LENGTH, "prefix_dense_intermediate_size"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps"),
        (key::LOGIT_SCALE, "logit_scale"),
        (key::EXPERT_SHARED_COUNT, "num_shared_experts"),
        (key::EXPERT_WEIGHTS_NORM, "norm_topk_prob"),
        (key::LEADING_DENSE_BLOCK_COUNT, FIRST_K_DENSE),
    ],
    ..Description::DECODER
};

impl Converter for Cohere2Moe {
    fn description(&self) -> &'static Description {
        &COHERE2_MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("logit_scale", 0.0625);
        config.default("sliding_window", 4096);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width =
            config.require_u32(&["intermediate_size"], "the FFN size of a routed expert")?;
        let mtp_layers = config.u32(&[mtp::COUNT])?.filter(|&count| count > 0);
        let mut with_dense_size = config.clone();
        let dense = config.u32(&["prefix_dense_intermediate_size", "dense_intermediate_size"])?;
        with_dense_size.set("intermediate_size", dense.unwrap_or(width));
        keys.stated(&with_dense_size)?;
        keys.set(
            key::BLOCK_COUNT,
            hparams::block_count(config)?.saturating_add(mtp_layers.unwrap_or(0)),
        );
        keys.set_f32(key::LOGIT_SCALE, config.f32(&["logit_scale"])?);
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
        let layers = sliding_window::layers(config, 4)?;
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&layers[..]));
        keys.vocab_size(config)?;
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, width);
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense_layers(config)?);
        keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("norm_topk_prob")?.unwrap_or(false));
        if let Some(shared) = config.u32(&["num_shared_experts"])?.filter(|&shared| shared > 0) {
            if let Some((_, strategy)) =
                config.find(&[SHARED_EXPERT_COMBINATION]).filter(|(_, name)| *name != "average")
            {
                return Err(hparams::not_computed(config, SHARED_EXPERT_COMBINATION, strategy));
            }
            keys.set(key::EXPERT_SHARED_COUNT, shared);
            keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, width.saturating_mul(shared));
        }
        keys.set_u32(key::NEXTN_PREDICT_LAYERS, mtp_layers);
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        keys.rope_scaling_or_none();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name.ends_with(".bias") && renamed(name, TABLES).is_some() {
            return Ok(Some(Mapping::DroppedIfZero));
        }
        let width =
            || config.require_u32(&["intermediate_size"], "the FFN size of a routed expert");
        moe::mapping(config, name, width)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS);
        let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers.unwrap_or(0))?;
        let router = match count(model, key::EXPERT_GATING_FUNC) {
            Some(2) => Some("sigmoid"),
            Some(1) => Some("softmax"),
            _ => None,
        };
        let exported = exported
            .patterns(moe::one_by_one())
            .without(&[key::BLOCK_COUNT])
            .set("num_hidden_layers", blocks)
            .set_some("expert_selection_fn", router)
            .set_some(mtp::COUNT, mtp_layers);
        Some(sliding_window::export_of_pattern(model, exported))
    }
}

/// Returns the number of leading dense layers, from `mlp_layer_types` or `first_k_dense_replace`.
fn dense_layers(config: &Config) -> Result<u32, Error> {
    let types = config.find(&[MLP_LAYER_TYPES]).and_then(|(_, types)| types.as_array());
    let counted = types.map(|types| types.iter().take_while(|name| *name == "dense").count());
    match counted {
        Some(counted) => Ok(u32::try_from(counted).unwrap_or(u32::MAX)),
        None => Ok(config.u32(&[FIRST_K_DENSE])?.unwrap_or(0)),
    }
}
