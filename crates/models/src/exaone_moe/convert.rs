//! Exaone: the third generation, the fourth, whose norms follow what they normalize, and that with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, hparams, moe, mtp, sliding_window,
};
use crate::dots1::convert::export_of_routed;
use crate::exaone4;
use crate::exaone4::convert::{ROUTER_BIAS, further_keys, further_special, routed};
use crate::schema::key;

const EXPERT_TABLES: &[Table] = &[moe::BESIDE_SHARED, mtp::NAMES, LLAMA_LIKE];

const DENSE: &[&str] = &["first_k_dense_replace", "first_last_k_dense_replace"];

/// K-Exaone.
pub(crate) struct ExaoneMoe;

/// Description of [`ExaoneMoe`].
pub(crate) static EXAONE_MOE: Description = Description {
    classes: &["ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"],
    architecture: "exaone-moe",
    model_type: "exaone_moe",
    pre_tokenizers: &["exaone-moe"],
    tensor_names: EXPERT_TABLES,
    config_fields: &[
        (key::EXPERT_SHARED_COUNT, "num_shared_experts"),
        (key::EXPERT_GROUP_COUNT, "n_group"),
        (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
    ],
    ..Description::DECODER
};

impl Converter for ExaoneMoe {
    fn description(&self) -> &'static Description {
        &EXAONE_MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        exaone4::convert::complete(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        exaone4::convert::keys(config, keys)?;
        let further = config.u32(&[mtp::COUNT])?.unwrap_or(0);
        let number = |field: &str| config.require_u32(&[field], "the size of the experts");
        let (width, shared) = (number(moe::WIDTH[0])?, number("num_shared_experts")?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, width);
        keys.set(key::EXPERT_SHARED_COUNT, shared);
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, width.saturating_mul(shared));
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
        if let Some(norm) = config.bool("norm_topk_prob")? {
            keys.set(key::EXPERT_WEIGHTS_NORM, norm);
        }
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, config.u32(DENSE)?.unwrap_or(0));
        further_keys(config, keys, Some(further))?;
        keys.else_not_stretched();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        match further_special(config, name, EXPERT_TABLES)? {
            None => routed(config, name),
            found => Ok(found),
        }
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        hparams::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = export_of_routed(model, exported.patterns([ROUTER_BIAS]));
        let exported = sliding_window::export_of_pattern(model, exported);
        let patterns = [&moe::one_by_one()[..], &[ROUTER_BIAS]].concat();
        mtp::export(model, exported, EXPERT_TABLES, &patterns, mtp::COUNT)
    }
}
