//! Ernie 4.5, dense and with experts, and what reads with it.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Exported, Mapping, VocabularyKind, moe};
use crate::ernie4_5;

pub(crate) struct Ernie45Moe;

impl Converter for Ernie45Moe {
    fn classes(&self) -> &'static [&'static str] {
        &["Ernie4_5_MoeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "ernie4_5-moe"
    }

    fn model_type(&self) -> &'static str {
        "ernie4_5_moe"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::SentencePieceThenPrefix
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[moe::BESIDE_SHARED, LLAMA_LIKE]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("expert_count", "moe_num_experts"),
            ("expert_used_count", "moe_k"),
            ("expert_shared_count", "moe_num_shared_experts"),
            ("interleave_moe_layer_step", "moe_layer_interval"),
            ("leading_dense_block_count", "moe_layer_start_index"),
        ]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        ernie4_5::convert::complete(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32("expert_count", config.u32(&["moe_num_experts"])?);
        keys.set_u32("expert_used_count", config.u32(&["moe_k"])?);
        keys.set_u32("interleave_moe_layer_step", config.u32(&["moe_layer_interval"])?);
        keys.set_u32("leading_dense_block_count", config.u32(&["moe_layer_start_index"])?);
        let width = config.u32(moe::WIDTH)?;
        keys.set_u32("expert_feed_forward_length", width);
        if let Some(shared) = config.u32(&["moe_num_shared_experts"])? {
            keys.set("expert_shared_count", shared);
            let width = width.filter(|_| shared > 0).map(|width| width.saturating_mul(shared));
            keys.set_u32("expert_shared_feed_forward_length", width);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // Layers that predict further tokens, which programs do not use yet.
        if name.starts_with("model.mtp_") {
            return Ok(Some(Mapping::Dropped));
        }
        if let Some(bias) = moe::router_bias(ROUTER_BIAS, name) {
            return Ok(Some(bias));
        }
        let mut counted = config.clone();
        if let Some(count) = config.u32(&["moe_num_experts"])? {
            counted.set("num_experts", count);
        }
        let width = || config.require_u32(moe::WIDTH, "the width of an expert");
        moe::mapping(&counted, name, width)
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        moe::gates_first(tensors)
    }

    fn export(&self, _model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns([ROUTER_BIAS]).patterns(moe::one_by_one()))
    }
}

/// What is added to scores only to choose experts, in one row.
const ROUTER_BIAS: &str = "model.layers.{}.mlp.moe_statics.e_score_correction_bias";
