//! Cohere's second generation with experts.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, renamed};
use crate::convert::{Converter, Exported, Mapping, hparams, moe, mtp, sliding_window};

const TABLES: &[Table] = &[moe::BESIDE_SHARED, mtp::NAMES, LLAMA_LIKE];

const KINDS: &str = "mlp_layer_types";

const DENSE: &str = "first_k_dense_replace";

const STRATEGY: &str = "shared_expert_combination_strategy";

pub(crate) struct Cohere2Moe;

impl Converter for Cohere2Moe {
    fn classes(&self) -> &'static [&'static str] {
        &["Cohere2MoeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "cohere2moe"
    }

    fn model_type(&self) -> &'static str {
        "cohere2_moe"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["command-r", "tiny_aya"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        TABLES
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("expert_feed_forward_length", "intermediate_size"),
            ("feed_forward_length", "prefix_dense_intermediate_size"),
            ("attention.layer_norm_epsilon", "layer_norm_eps"),
            ("logit_scale", "logit_scale"),
            ("expert_shared_count", "num_shared_experts"),
            ("expert_weights_norm", "norm_topk_prob"),
            ("leading_dense_block_count", DENSE),
        ]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("logit_scale", 0.0625);
        config.default("sliding_window", 4096);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width =
            config.require_u32(&["intermediate_size"], "the feed-forward width of an expert")?;
        let further = config.u32(&[mtp::COUNT])?.filter(|&further| further > 0);
        let mut dense_first = config.clone();
        let dense = config.u32(&["prefix_dense_intermediate_size", "dense_intermediate_size"])?;
        dense_first.set("intermediate_size", dense.unwrap_or(width));
        keys.stated(&dense_first)?;
        keys.set("block_count", hparams::block_count(config)?.saturating_add(further.unwrap_or(0)));
        keys.set_f32("logit_scale", config.f32(&["logit_scale"])?);
        keys.set_u32("attention.sliding_window", config.u32(&["sliding_window"])?);
        let layers = sliding_window::layers(config, 4)?;
        keys.set("attention.sliding_window_pattern", Array::from(&layers[..]));
        keys.vocab_size(config)?;
        keys.set("expert_feed_forward_length", width);
        keys.set("leading_dense_block_count", dense_layers(config)?);
        keys.set("expert_weights_norm", config.bool("norm_topk_prob")?.unwrap_or(false));
        if let Some(shared) = config.u32(&["num_shared_experts"])?.filter(|&shared| shared > 0) {
            if let Some((_, strategy)) =
                config.find(&[STRATEGY]).filter(|(_, way)| *way != "average")
            {
                return Err(hparams::not_computed(config, STRATEGY, strategy));
            }
            keys.set("expert_shared_count", shared);
            keys.set("expert_shared_feed_forward_length", width.saturating_mul(shared));
        }
        keys.set_u32("nextn_predict_layers", further);
        keys.set("rope.dimension_count", hparams::head_dim(config)?);
        keys.else_not_stretched();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name.ends_with(".bias") && renamed(name, TABLES).is_some() {
            return Ok(Some(Mapping::DroppedIfZero));
        }
        let width = || config.require_u32(&["intermediate_size"], "the width of an expert");
        moe::mapping(config, name, width)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let further = count(model, "nextn_predict_layers");
        let blocks = count(model, "block_count")?.checked_sub(further.unwrap_or(0))?;
        let function = match count(model, "expert_gating_func") {
            Some(2) => Some("sigmoid"),
            Some(1) => Some("softmax"),
            _ => None,
        };
        let exported = exported
            .patterns(moe::one_by_one())
            .without(&["block_count"])
            .set("num_hidden_layers", blocks)
            .set_some("expert_selection_fn", function)
            .set_some(mtp::COUNT, further);
        Some(sliding_window::export_of_pattern(model, exported))
    }
}

/// The first layers, which have no experts: as they are listed, or counted.
fn dense_layers(config: &Config) -> Result<u32, Error> {
    let kinds = config.find(&[KINDS]).and_then(|(_, kinds)| kinds.as_array());
    let counted = kinds.map(|kinds| kinds.iter().take_while(|kind| *kind == "dense").count());
    match counted {
        Some(counted) => Ok(u32::try_from(counted).unwrap_or(u32::MAX)),
        None => Ok(config.u32(&[DENSE])?.unwrap_or(0)),
    }
}
