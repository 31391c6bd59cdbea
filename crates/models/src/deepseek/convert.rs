//! Conversion of `DeepseekForCausalLM`. Query and key rows are permuted to the interleaved RoPE
//! layout.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, export, hparams, moe, steps,
};
use crate::schema::key;

pub(crate) const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size", "intermediate_size"];

pub(crate) struct Deepseek;

/// Description of [`Deepseek`].
pub(crate) static DEEPSEEK: Description = Description {
    classes: &["DeepseekForCausalLM"],
    architecture: "deepseek",
    model_type: "deepseek",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["deepseek-llm"],
    tensor_names: &[moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "n_routed_experts"),
        (key::EXPERT_SHARED_COUNT, "n_shared_experts"),
        (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
    ],
    // Runtimes do not normalize the expert weights of this architecture.
    required_flags: &[("norm_topk_prob", false)],
    ..Description::DECODER
};

impl Converter for Deepseek {
    fn description(&self) -> &'static Description {
        &DEEPSEEK
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        keys.rope_scaling_or_none();
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["first_k_dense_replace"])?);
        keys.vocab_size(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_WIDTH)?);
        keys.set(key::EXPERT_WEIGHTS_SCALE, 1.0f32);
        keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let width = || config.require_u32(EXPERT_WIDTH, "the FFN size of a routed expert");
        moe::mapping(config, name, width)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported.patterns(moe::one_by_one()).set("norm_topk_prob", false);
        Some(match export::count(model, key::EXPERT_GATING_FUNC) {
            Some(_) => exported.set("scoring_func", "softmax"),
            None => exported,
        })
    }
}
