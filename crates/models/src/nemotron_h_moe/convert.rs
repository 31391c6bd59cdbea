//! Conversion of Nemotron-H with MoE layers, and of Puzzle variants, whose `block_configs` state
//! the kind, the expert width and the number of used experts of each layer.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::keys::Keys;
use crate::convert::tensor_names::renamed;
use crate::convert::{Converter, Description, Exported, Mapping, hparams, mtp, steps};
use crate::nemotron_h::convert::{
    EXPERTS_PER_TOKEN, LATENT_SIZE, NAMES, NEMOTRON_H, NemotronH, PATTERN, SHARED_WIDTH,
    export_hybrid, hybrid_keys,
};
use crate::schema::{HyperParameters, key};

const EXPERT_WIDTH: &str = "moe_intermediate_size";

pub(crate) struct NemotronHMoe;

/// Description of [`NemotronHMoe`].
pub(crate) static NEMOTRON_H_MOE: Description =
    Description { architecture: "nemotron_h_moe", ..NEMOTRON_H };

impl Converter for NemotronHMoe {
    fn description(&self) -> &'static Description {
        &NEMOTRON_H_MOE
    }

    fn base(&self) -> &'static dyn Converter {
        &NemotronH
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        if let Some(number) = config.u32(&[mtp::COUNT])?.filter(|&number| number > 0) {
            return Err(hparams::not_computed(config, mtp::COUNT, number));
        }
        let width = config.require_u32(&[EXPERT_WIDTH], "the FFN size of an expert")?;
        hybrid_keys(config, keys, width)?;
        keys.set_u32(key::EXPERT_USED_COUNT, config.u32(&[EXPERTS_PER_TOKEN])?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, width);
        moe_keys(config, keys)
    }
}

/// Writes the keys that are the same for all MoE layers.
fn moe_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, config.u32(&[SHARED_WIDTH])?);
    keys.set_u32(key::EXPERT_COUNT, config.u32(&["n_routed_experts"])?);
    keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?);
    if let Some(norm) = config.bool("norm_topk_prob")? {
        keys.set(key::EXPERT_WEIGHTS_NORM, norm);
    }
    keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
    keys.set_u32(key::EXPERT_GROUP_COUNT, config.u32(&["n_group"])?);
    keys.set_u32(key::MOE_LATENT_SIZE, config.u32(&[LATENT_SIZE])?);
    Ok(())
}

/// Field of Puzzle variants with the configuration of each layer.
const BLOCK_CONFIGS: &str = "block_configs";

const BLOCK_KIND: &str = "block_type";

/// Converter of Puzzle variants, whose layers differ in expert width and number of used experts. MTP layers
/// are left out.
pub(crate) struct NemotronHPuzzle;

/// Description of [`NemotronHPuzzle`].
pub(crate) static NEMOTRON_H_PUZZLE: Description = Description {
    classes: &["NemotronHPuzzleForCausalLM"],
    architecture: "nemotron_h_moe",
    model_type: "nemotron_h_puzzle",
    ..NEMOTRON_H
};

impl Converter for NemotronHPuzzle {
    fn description(&self) -> &'static Description {
        &NEMOTRON_H_PUZZLE
    }

    fn base(&self) -> &'static dyn Converter {
        &NemotronH
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        let blocks = block_configs(config)?;
        let kinds: Vec<Value> = blocks.iter().map(|block| block[BLOCK_KIND].clone()).collect();
        config.set("num_hidden_layers", kinds.len());
        config.set("layers_block_type", kinds);
        NemotronH.complete_config(config)
    }

    fn variant(&self, _: &Config) -> Option<&'static dyn Converter> {
        None
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let blocks = block_configs(config)?;
        hybrid_keys(config, keys, 0)?;
        let values = |field: &str| -> Vec<i32> {
            let number = |block: &Value| i32::try_from(block[field].as_u64().unwrap_or(0));
            blocks.iter().map(|block| number(block).unwrap_or(i32::MAX)).collect()
        };
        let widths = values(EXPERT_WIDTH);
        keys.set(key::FEED_FORWARD_LENGTH, Array::from(&widths[..]));
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, Array::from(&widths[..]));
        keys.set(key::EXPERT_USED_COUNT, Array::from(&values(EXPERTS_PER_TOKEN)[..]));
        moe_keys(config, keys)
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name.starts_with("mtp.")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = match name.strip_prefix("model.") {
            Some(rest) => format!("backbone.{rest}"),
            None => name.to_owned(),
        };
        match NemotronH.map_tensor(config, &name)? {
            None => match renamed(&name, &[NAMES]) {
                Some(gguf_name) => {
                    let steps = steps::llama_order(config, &gguf_name)?;
                    Ok(Some(Mapping::one(gguf_name, steps)))
                }
                None => Ok(None),
            },
            mapping => Ok(mapping),
        }
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let exported = export_hybrid(model, exported)?;
        let letters = exported.config.get(PATTERN)?.as_str()?;
        let block = |(layer, letter): (u64, char)| match letter {
            'M' => Some(json!({BLOCK_KIND: "mamba"})),
            '*' => Some(json!({BLOCK_KIND: "attention"})),
            _ => Some(json!({
                BLOCK_KIND: "moe",
                EXPERT_WIDTH: hyper.u64_in_layer(key::EXPERT_FEED_FORWARD_LENGTH, layer).ok()?,
                EXPERTS_PER_TOKEN: hyper.u64_in_layer(key::EXPERT_USED_COUNT, layer).ok()?,
            })),
        };
        let blocks: Option<Vec<Value>> = (0..).zip(letters.chars()).map(block).collect();
        Some(
            exported
                .without(&[key::EXPERT_FEED_FORWARD_LENGTH, key::EXPERT_USED_COUNT])
                .set(BLOCK_CONFIGS, blocks?),
        )
    }
}

/// Returns the configurations of all layers.
fn block_configs(config: &Config) -> Result<Vec<Value>, Error> {
    let blocks = config.find(&[BLOCK_CONFIGS]).and_then(|(_, blocks)| blocks.as_array());
    blocks.cloned().ok_or_else(|| config.missing(BLOCK_CONFIGS, "the configuration of each layer"))
}
