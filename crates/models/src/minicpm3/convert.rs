//! Conversion of MiniCPM3: MLA whose KV projection stays one matrix, and LongRoPE factors.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::rope::{DEFAULT_BASE, Rope};
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, VocabularyKind, defaults, export, hparams, rope,
};
use crate::schema::key;

/// Tensor names of MLA.
pub(crate) const NAMES: Table = &[
    ("model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"),
    ("model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"),
    ("model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"),
    ("model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"),
    ("model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"),
    ("model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b"),
];

/// Keys, and their config.json fields in exports.
pub(crate) const FIELDS: &[(&str, &str)] = &[
    (key::ATTENTION_Q_LORA_RANK, "q_lora_rank"),
    (key::ATTENTION_KV_LORA_RANK, "kv_lora_rank"),
    (key::ROPE_DIMENSION_COUNT, "qk_rope_head_dim"),
];

/// Field with the size of the part of a key that has no RoPE.
const NOPE_DIM: &str = "qk_nope_head_dim";

/// Field with the size of the part of a key that has RoPE.
pub(crate) const ROPE_DIM: &str = "qk_rope_head_dim";

/// Field with the head size of values.
pub(crate) const VALUE_DIM: &str = "v_head_dim";

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
        config.default(VALUE_DIM, hparams::width(config)? / hparams::head_count(config)?.max(1));
        defaults::attention(config)
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
        mla_keys(config, keys)?;
        keys.set_u32(key::ROPE_DIMENSION_COUNT, config.u32(&[ROPE_DIM])?);
        keys.set_f32(
            key::ROPE_FREQ_BASE,
            Rope::of(config)?.base.filter(|&base| base != DEFAULT_BASE),
        );
        // The default of the key is the embedding size divided by the number of heads.
        let default = hparams::width(config)? / hparams::head_count(config)?.max(1);
        let value = config.u32(&[VALUE_DIM])?.filter(|&value| value != default);
        keys.set_u32(key::ATTENTION_VALUE_LENGTH, value);
        Ok(())
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        let rotary_dims = config.require_u32(&[ROPE_DIM], "the rotary dimensions of a key")?;
        rope::longrope_factors(config, rotary_dims)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        // These multipliers have no keys; they are constants of the architecture.
        let (embedding, depth) = (12, 1.4);
        Some(export_mla(model, exported)?.set("scale_emb", embedding).set("scale_depth", depth))
    }
}

/// Writes the KV LoRA rank and the head size of keys.
pub(crate) fn mla_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let size = |field: &str| config.require_u32(&[field], "a size of multi-head latent attention");
    keys.set(key::ATTENTION_KV_LORA_RANK, size("kv_lora_rank")?);
    keys.set(key::ATTENTION_KEY_LENGTH, size(NOPE_DIM)?.saturating_add(size(ROPE_DIM)?));
    Ok(())
}

/// Completes an export with the head sizes of MLA.
pub(crate) fn export_mla(model: &Model, exported: Exported) -> Option<Exported> {
    let count = |key| export::count(model, key);
    let nope_dim = count("attention.key_length")?.checked_sub(count("rope.dimension_count")?)?;
    let exported = exported
        .without(&[key::ATTENTION_KEY_LENGTH])
        .set(NOPE_DIM, nope_dim)
        .set_some(VALUE_DIM, count("attention.value_length"));
    Some(exported)
}
