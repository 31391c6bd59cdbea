//! Conversion of Phi-3 and Phi-4. The attention factor of LongRoPE is the first key, as in the
//! output of llama.cpp's converter.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, VocabularyKind, export, hparams, rope,
};
use crate::schema::key;

/// Matrices that are fused in checkpoints and GGUF files: QKV, and gate with up projection.
const FUSED_NAMES: Table = &[
    ("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

pub(crate) struct Phi3;

/// Description of [`Phi3`].
pub(crate) static PHI3: Description = Description {
    classes: &["Phi3ForCausalLM", "Phi4ForCausalLMV"],
    architecture: "phi3",
    model_type: "phi3",
    vocabulary: VocabularyKind::Phi3,
    pre_tokenizers: &["dbrx", "gpt-4o"],
    tensor_names: &[FUSED_NAMES, LLAMA_LIKE],
    config_fields: &[(
        key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH,
        "original_max_position_embeddings",
    )],
    ..Description::DECODER
};

impl Converter for Phi3 {
    fn description(&self) -> &'static Description {
        &PHI3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("original_max_position_embeddings", 4096);
        config.default("rope_theta", 1e4);
        Ok(())
    }

    fn leading_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        if rope::longrope_factors(config, rotary_dims(config)?)?.is_empty() {
            return Ok(());
        }
        let factor = Rope::of(config)?.longrope_attention_factor()?;
        keys.set(key::ROPE_SCALING_ATTN_FACTOR, factor as f32);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        let original = Rope::of(config)?.original_context()? as u32;
        keys.set(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH, original);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
        let epsilon = config.f32(&["rms_norm_eps"])?.unwrap_or(1e-5);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims(config)?);
        keys.set_f32(key::ROPE_FREQ_BASE, Rope::of(config)?.base);
        keys.file_type();
        // A window of 0 marks Phi-4 for llama.cpp.
        keys.set(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?.unwrap_or(0));
        Ok(())
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::longrope_factors(config, rotary_dims(config)?)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported.set_some("partial_rotary_factor", export::rotated_share(model));
        Some(match export::count(model, key::ATTENTION_SLIDING_WINDOW) {
            Some(0) => exported.set("sliding_window", Value::Null),
            _ => exported,
        })
    }
}

/// Returns the number of rotary dimensions of a head.
fn rotary_dims(config: &Config) -> Result<u32, Error> {
    let width = f64::from(hparams::width(config)?);
    Ok((rope::rotated_share(config, 1.0)? * width) as u32 / hparams::head_count(config)?)
}
