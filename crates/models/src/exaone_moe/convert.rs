//! Conversion of `ExaoneMoEForCausalLM` (K-EXAONE): as `exaone4` with experts; tensors `mtp.*`
//! become layers after the last.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, moe, mtp, rope, sliding_window,
};
use crate::dots1::convert::export_moe;
use crate::exaone4;
use crate::exaone4::convert::{ROUTER_BIAS, map_moe_tensor, map_mtp_tensor, mtp_keys};
use crate::schema::key;

const TENSOR_NAMES: &[Table] = &[moe::BESIDE_SHARED, mtp::NAMES, LLAMA_LIKE];

const LEADING_DENSE: &[&str] = &["first_k_dense_replace", "first_last_k_dense_replace"];

pub(crate) struct ExaoneMoe;

/// Description of [`ExaoneMoe`].
pub(crate) static EXAONE_MOE: Description = Description {
    classes: &["ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"],
    architecture: "exaone-moe",
    model_type: "exaone_moe",
    pre_tokenizers: &["exaone-moe"],
    tensor_names: TENSOR_NAMES,
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
        let mtp_layers = config.u32(&[mtp::COUNT])?.unwrap_or(0);
        let size = |field: &str| config.require_u32(&[field], "a size of the experts");
        let (width, shared) = (size(moe::WIDTH[0])?, size("num_shared_experts")?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, width);
        keys.set(key::EXPERT_SHARED_COUNT, shared);
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, width.saturating_mul(shared));
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
        if let Some(norm) = config.bool("norm_topk_prob")? {
            keys.set(key::EXPERT_WEIGHTS_NORM, norm);
        }
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, config.u32(LEADING_DENSE)?.unwrap_or(0));
        mtp_keys(config, keys, Some(mtp_layers))?;
        keys.rope_scaling_or_none();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        match map_mtp_tensor(config, name, TENSOR_NAMES)? {
            None => map_moe_tensor(config, name),
            mapping => Ok(mapping),
        }
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = export_moe(model, exported.patterns([ROUTER_BIAS]));
        let exported = sliding_window::export_of_pattern(model, exported);
        let patterns = [&moe::one_by_one()[..], &[ROUTER_BIAS]].concat();
        mtp::export(model, exported, TENSOR_NAMES, &patterns, mtp::COUNT)
    }
}
