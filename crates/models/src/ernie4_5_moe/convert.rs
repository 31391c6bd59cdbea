//! Conversion of `Ernie4_5_MoeForCausalLM`: as `ernie4_5`, with routed and shared experts.
//! Multi-token prediction layers are dropped.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, moe};
use crate::ernie4_5;
use crate::schema::key;

pub(crate) struct Ernie45Moe;

/// Description of [`Ernie45Moe`].
pub(crate) static ERNIE45_MOE: Description = Description {
    classes: &["Ernie4_5_MoeForCausalLM"],
    architecture: "ernie4_5-moe",
    model_type: "ernie4_5_moe",
    vocabulary: VocabularyKind::SentencePieceThenPrefix,
    tensor_names: &[moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "moe_num_experts"),
        (key::EXPERT_USED_COUNT, "moe_k"),
        (key::EXPERT_SHARED_COUNT, "moe_num_shared_experts"),
        (key::INTERLEAVE_MOE_LAYER_STEP, "moe_layer_interval"),
        (key::LEADING_DENSE_BLOCK_COUNT, "moe_layer_start_index"),
    ],
    ..Description::DECODER
};

impl Converter for Ernie45Moe {
    fn description(&self) -> &'static Description {
        &ERNIE45_MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        ernie4_5::convert::complete(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_COUNT, config.u32(&["moe_num_experts"])?);
        keys.set_u32(key::EXPERT_USED_COUNT, config.u32(&["moe_k"])?);
        keys.set_u32(key::INTERLEAVE_MOE_LAYER_STEP, config.u32(&["moe_layer_interval"])?);
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["moe_layer_start_index"])?);
        let width = config.u32(moe::WIDTH)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, width);
        if let Some(shared) = config.u32(&["moe_num_shared_experts"])? {
            keys.set(key::EXPERT_SHARED_COUNT, shared);
            let width = width.filter(|_| shared > 0).map(|width| width.saturating_mul(shared));
            keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, width);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // Multi-token prediction layers; runtimes do not use them.
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
        moe::mapping(&counted, name, || moe::width(config))
    }

    fn order_tensors(&self, tensors: &mut [Tensor]) {
        moe::gates_first(tensors)
    }

    fn export(&self, _model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.patterns([ROUTER_BIAS]).patterns(moe::one_by_one()))
    }
}

/// Selection bias of the router, a matrix of one row.
const ROUTER_BIAS: &str = "model.layers.{}.mlp.moe_statics.e_score_correction_bias";
