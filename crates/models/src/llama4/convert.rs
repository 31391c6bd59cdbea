//! Conversion of the text model of Llama 4: expert matrices are stacked and transposed.
//! `intermediate_size` is the FFN size of an expert, not of a dense layer.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::moe::turned;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, export, hparams, rope,
};
use crate::schema::key;

/// Tensor names of FFN and MoE.
const FFN_NAMES: Table = &[
    ("model.layers.{}.feed_forward.router", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.feed_forward.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.feed_forward.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.feed_forward.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down"),
];

/// Down projections of all experts of a layer.
const DOWN: &str = "model.layers.{}.feed_forward.experts.down_proj";

/// Gate and up projections of all experts of a layer.
const GATE_AND_UP: &str = "model.layers.{}.feed_forward.experts.gate_up_proj";

/// Field with the FFN size of an expert, set by [`Llama4::complete_config`].
const EXPERT_LENGTH: &[&str] = &["intermediate_size_moe"];

pub(crate) struct Llama4;

/// Description of [`Llama4`].
pub(crate) static LLAMA4: Description = Description {
    classes: &["Llama4ForCausalLM", "Llama4ForConditionalGeneration"],
    architecture: "llama4",
    model_type: "llama4_text",
    pre_tokenizers: &["llama4", "gpt-4o"],
    tensor_names: &[FFN_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "num_local_experts"),
        (key::EXPERT_FEED_FORWARD_LENGTH, "intermediate_size"),
        (key::FEED_FORWARD_LENGTH, "intermediate_size_mlp"),
        (key::INTERLEAVE_MOE_LAYER_STEP, "interleave_moe_layer_step"),
    ],
    ..Description::DECODER
};

impl Converter for Llama4 {
    fn description(&self) -> &'static Description {
        &LLAMA4
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 128);
        config.default("num_key_value_heads", 8);
        config.default("rope_theta", 5e5);
        config.default("num_local_experts", 16);
        config.default("num_experts_per_tok", 1);
        config.default("interleave_moe_layer_step", 1);
        // In this class `intermediate_size` is the FFN size of an expert.
        let expert = config.require_u32(&["intermediate_size"], "the FFN size of an expert")?;
        let dense = config.u32(&["intermediate_size_mlp"])?.unwrap_or(16384);
        config.set(EXPERT_LENGTH[0], expert);
        config.set("intermediate_size", dense);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        // Runtimes tell from the number of experts whether queries and keys are normalized.
        let is_normalized = config.u32(&["num_local_experts"])? != Some(128);
        if config.bool("use_qk_norm")?.unwrap_or(true) != is_normalized {
            return Err(hparams::not_computed(config, "use_qk_norm", !is_normalized));
        }
        keys.decoder(config, hparams::stated_head_dim(config)?)?;
        keys.set(key::VOCAB_SIZE, config.require_u32(&["vocab_size"], "the vocabulary size")?);
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        let step = config.u32(&["interleave_moe_layer_step"])?;
        keys.set_u32(key::INTERLEAVE_MOE_LAYER_STEP, step);
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(EXPERT_LENGTH)?);
        let kinds = config.find(&["layer_types"]).and_then(|(_, kinds)| kinds.as_array());
        if kinds.is_some_and(|kinds| kinds.iter().all(|kind| kind == "full_attention")) {
            keys.set(key::ATTENTION_SLIDING_WINDOW, 0u32);
        }
        Ok(())
    }

    // Expert matrices are stored transposed.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        turned(config, name, [DOWN, GATE_AND_UP], EXPERT_LENGTH)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let count = |key| export::count(model, key);
        let exported = exported
            .patterns([DOWN, GATE_AND_UP])
            .without(&[key::ATTENTION_SLIDING_WINDOW])
            // Runtimes tell from the number of experts whether queries and keys are normalized.
            .set("use_qk_norm", count("expert_count") != Some(128));
        if count("attention.sliding_window") == Some(0) {
            let blocks = usize::try_from(count("block_count")?.min(1 << 16)).ok()?;
            return Some(exported.set("layer_types", vec!["full_attention"; blocks]));
        }
        Some(exported)
    }
}
