//! Conversion of `RwkvHybridForCausalLM`. Time mixing tensors are under `self_attn` or
//! `self_attn.time_mixer` and are stacked as in `rwkv7`; low-rank sizes are constants of the
//! architecture.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams};
use crate::rwkv6::convert::CONTEXT;
use crate::rwkv7::convert::{
    CHANNEL_FACTORS, LORA_PARTS, TOKEN_SHIFT_PARTS, canonical_name, has_gate, map_time_mix,
};
use crate::schema::key;

/// Time mixing tensors in the place of the attention of Qwen 2.
const TIME_MIXER_NAMES: Table = &[
    ("model.layers.{}.self_attn.time_mixer.receptance", "blk.{}.time_mix_receptance"),
    ("model.layers.{}.self_attn.time_mixer.key", "blk.{}.time_mix_key"),
    ("model.layers.{}.self_attn.time_mixer.value", "blk.{}.time_mix_value"),
    ("model.layers.{}.self_attn.time_mixer.output", "blk.{}.time_mix_output"),
    ("model.layers.{}.self_attn.time_mixer.ln_x", "blk.{}.time_mix_ln"),
    ("model.layers.{}.self_attn.receptance", "blk.{}.time_mix_receptance"),
    ("model.layers.{}.self_attn.key", "blk.{}.time_mix_key"),
    ("model.layers.{}.self_attn.value", "blk.{}.time_mix_value"),
    ("model.layers.{}.self_attn.output", "blk.{}.time_mix_output"),
    ("model.layers.{}.self_attn.ln_x", "blk.{}.time_mix_ln"),
];

pub(crate) struct Arwkv7;

/// Description of [`Arwkv7`].
pub(crate) static ARWKV7: Description = Description {
    classes: &["RwkvHybridForCausalLM"],
    architecture: "arwkv7",
    model_type: "rwkv_hybrid",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    tensor_names: &[TIME_MIXER_NAMES, LLAMA_LIKE],
    config_fields: &[(key::WKV_HEAD_SIZE, "head_size")],
    ..Description::DECODER
};

impl Converter for Arwkv7 {
    fn description(&self) -> &'static Description {
        &ARWKV7
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let version = config.require_u32(&["wkv_version"], "the version of RWKV")?;
        if version != 7 {
            return Err(hparams::not_computed(config, "wkv_version", version));
        }
        let gate = has_gate(config)?;
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        let epsilon = config.require_f32(&["rms_norm_eps"], "the epsilon of the RMS norms")?;
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        keys.set(key::WKV_HEAD_SIZE, config.require_u32(&["head_size"], "the size of a WKV head")?);
        keys.set(key::ATTENTION_DECAY_LORA_RANK, 64u32);
        keys.set(key::ATTENTION_ICLR_LORA_RANK, 64u32);
        keys.set(key::ATTENTION_VALUE_RESIDUAL_MIX_LORA_RANK, 32u32);
        keys.set(key::ATTENTION_GATE_LORA_RANK, if gate { 128u32 } else { 0 });
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.file_type();
        keys.set(key::TOKEN_SHIFT_COUNT, 1u32);
        keys.set(key::ATTENTION_HEAD_COUNT, 0u32);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_time_mix(config, &canonical_name(name))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        const PREFIX: &str = "model.layers.{}.self_attn.time_mixer.";
        let gate = count(model, key::ATTENTION_GATE_LORA_RANK).is_some_and(|rank| rank > 0);
        let mixed = TOKEN_SHIFT_PARTS.iter().map(|part| format!("{PREFIX}x_{part}"));
        let ranked =
            LORA_PARTS.iter().flat_map(|of| (0..3).map(move |i| format!("{PREFIX}{of}{i}")));
        let factors = CHANNEL_FACTORS.iter().map(|part| format!("{PREFIX}{part}"));
        let names: Vec<String> = mixed.chain(ranked).chain(factors).collect();
        let exported: Exported = exported.patterns(names.iter().map(String::as_str));
        let exported = exported.without(&[key::ATTENTION_HEAD_COUNT]);
        Some(exported.set("wkv_version", 7).set("wkv_has_gate", gate))
    }
}
