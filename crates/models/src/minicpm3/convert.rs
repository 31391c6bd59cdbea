//! MiniCPM 3 and PLM: keys and values are compressed, and unpacked by one matrix.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, VocabularyKind, export, hparams,
};
use crate::schema::key;

pub(crate) const NAMES: Table = &[
    ("model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"),
    ("model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"),
    ("model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"),
    ("model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b"),
];

pub(crate) const FIELDS: &[(&str, &str)] = &[
    (key::ATTENTION_Q_LORA_RANK, "q_lora_rank"),
    (key::ATTENTION_KV_LORA_RANK, "kv_lora_rank"),
    (key::ROPE_DIMENSION_COUNT, "qk_rope_head_dim"),
];

const FIXED: &str = "qk_nope_head_dim";

pub(crate) const ROTATED: &str = "qk_rope_head_dim";

pub(crate) const VALUE: &str = "v_head_dim";

pub(crate) struct Minicpm3;

/// Description of [`Minicpm3`].
pub(crate) static MINICPM3: Description = Description {
    classes: &["MiniCPM3ForCausalLM"],
    architecture: "minicpm3",
    model_type: "minicpm3",
    vocabulary: VocabularyKind::SentencePiece,
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: FIELDS,
    ..Description::DECODER
};

impl Converter for Minicpm3 {
    fn description(&self) -> &'static Description {
        &MINICPM3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default(VALUE, hparams::width(config)? / hparams::head_count(config)?.max(1));
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.file_type();
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
        keys.set_f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON, config.f32(&["rms_norm_eps"])?);
        keys.vocab_size(config)?;
        keys.set_u32(key::ATTENTION_Q_LORA_RANK, config.u32(&["q_lora_rank"])?);
        widths(config, keys)?;
        keys.set_u32(key::ROPE_DIMENSION_COUNT, config.u32(&[ROTATED])?);
        // Where there is no key, programs take the width of the model divided among the heads.
        let usual = hparams::width(config)? / hparams::head_count(config)?.max(1);
        let value = config.u32(&[VALUE])?.filter(|&value| value != usual);
        keys.set_u32(key::ATTENTION_VALUE_LENGTH, value);
        Ok(())
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        let rotated = config.require_u32(&[ROTATED], "dimensions of a key that rotate")?;
        hparams::longrope_factors(config, rotated)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        // Programs know these of the architecture.
        let (embedding, depth) = (12, 1.4);
        Some(export(model, exported)?.set("scale_emb", embedding).set("scale_depth", depth))
    }
}

/// What keys and values are compressed to, and the width of a key.
pub(crate) fn widths(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = |field: &str| config.require_u32(&[field], "a width of compressed attention");
    keys.set(key::ATTENTION_KV_LORA_RANK, width("kv_lora_rank")?);
    keys.set(key::ATTENTION_KEY_LENGTH, width(FIXED)?.saturating_add(width(ROTATED)?));
    Ok(())
}

pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let count = |key| export::count(model, key);
    let fixed = count("attention.key_length")?.checked_sub(count("rope.dimension_count")?)?;
    let exported = exported
        .without(&[key::ATTENTION_KEY_LENGTH])
        .set(FIXED, fixed)
        .set_some(VALUE, count("attention.value_length"));
    Some(exported)
}
