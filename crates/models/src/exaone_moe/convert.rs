//! Exaone: the third generation, the fourth, whose norms follow what they normalize, and that with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Exported, ExtraTensors, Mapping, hparams, moe, mtp, sliding_window,
};
use crate::dots1::convert::export_of_routed;
use crate::exaone4;
use crate::exaone4::convert::{ROUTER_BIAS, further_keys, further_special, routed};

const EXPERT_TABLES: &[Table] = &[moe::BESIDE_SHARED, mtp::NAMES, LLAMA_LIKE];

const DENSE: &[&str] = &["first_k_dense_replace", "first_last_k_dense_replace"];

/// K-Exaone.
pub(crate) struct ExaoneMoe;

impl Converter for ExaoneMoe {
    fn classes(&self) -> &'static [&'static str] {
        &["ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "exaone-moe"
    }

    fn model_type(&self) -> &'static str {
        "exaone_moe"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["exaone-moe"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        EXPERT_TABLES
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("expert_shared_count", "num_shared_experts"),
            ("expert_group_count", "n_group"),
            ("expert_group_used_count", "topk_group"),
            ("expert_weights_scale", "routed_scaling_factor"),
            ("leading_dense_block_count", "first_k_dense_replace"),
        ]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        exaone4::convert::complete(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        exaone4::convert::keys(config, keys)?;
        let further = config.u32(&[mtp::COUNT])?.unwrap_or(0);
        let number = |field: &str| config.require_u32(&[field], "the size of the experts");
        let (width, shared) = (number(moe::WIDTH[0])?, number("num_shared_experts")?);
        keys.set("expert_feed_forward_length", width);
        keys.set("expert_shared_count", shared);
        keys.set("expert_shared_feed_forward_length", width.saturating_mul(shared));
        keys.set_f32("expert_weights_scale", config.f32(&["routed_scaling_factor"])?);
        if let Some(norm) = config.bool("norm_topk_prob")? {
            keys.set("expert_weights_norm", norm);
        }
        keys.set("leading_dense_block_count", config.u32(DENSE)?.unwrap_or(0));
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
