//! Conversion of Grok 1, whose tensor names are those of the original code, and Grok 2, which is
//! named like Llama and Mixtral.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::{has, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, Mapping, VocabularyKind, hparams,
};
use crate::llama::convert::{map_mixtral_expert, mixtral_expert_patterns};
use crate::schema::key;

/// Tensor names of Grok 1.
const GROK1_NAMES: Table = &[
    ("transformer.in_out_embed", "token_embd"),
    ("transformer.rms_norm", "output_norm"),
    ("transformer.decoder_layer.{}.rms_norm", "blk.{}.attn_norm"),
    ("transformer.decoder_layer.{}.multi_head_attention.query", "blk.{}.attn_q"),
    ("transformer.decoder_layer.{}.multi_head_attention.key", "blk.{}.attn_k"),
    ("transformer.decoder_layer.{}.multi_head_attention.value", "blk.{}.attn_v"),
    ("transformer.decoder_layer.{}.multi_head_attention.linear", "blk.{}.attn_output"),
    ("transformer.decoder_layer.{}.rms_norm_1", "blk.{}.attn_output_norm"),
    ("transformer.decoder_layer.{}.rms_norm_2", "blk.{}.ffn_norm"),
    ("transformer.decoder_layer.{}.rms_norm_3", "blk.{}.layer_output_norm"),
    ("transformer.decoder_layer.{}.router", "blk.{}.ffn_gate_inp"),
];

/// Expert matrices of Grok 1, and their GGUF names.
const GROK1_EXPERTS: [(&str, &str); 3] = [
    ("transformer.decoder_layer.{}.moe.{}.linear.weight", "ffn_gate_exps"),
    ("transformer.decoder_layer.{}.moe.{}.linear_1.weight", "ffn_down_exps"),
    ("transformer.decoder_layer.{}.moe.{}.linear_v.weight", "ffn_up_exps"),
];

/// Tensor names of Grok 2 that differ from those of Llama.
const GROK2_NAMES: Table = &[
    ("model.layers.{}.pre_attn_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.post_attn_norm", "blk.{}.attn_output_norm"),
    ("model.layers.{}.pre_moe_norm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_moe_norm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
];

/// Keys, and their config.json fields in exports.
const FIELDS: &[(&str, &str)] = &[
    (key::EXPERT_COUNT, "num_local_experts"),
    (key::ATTN_LOGIT_SOFTCAPPING, "attn_logit_softcapping"),
    (key::ROUTER_LOGIT_SOFTCAPPING, "router_logit_softcapping"),
    (key::FINAL_LOGIT_SOFTCAPPING, "final_logit_softcapping"),
    (key::ATTENTION_TEMPERATURE_LENGTH, "attn_temperature_len"),
    (key::ATTENTION_OUTPUT_SCALE, "attn_output_multiplier"),
    (key::EMBEDDING_SCALE, "embedding_multiplier_scale"),
    (key::LOGIT_SCALE, "output_multiplier_scale"),
];

/// Keys of YaRN, and their fields at the top level of config.json.
const YARN: [(&str, &str); 6] = [
    ("rope.scaling.factor", "scaling_factor"),
    ("rope.scaling.original_context_length", "original_max_position_embeddings"),
    ("rope.scaling.yarn_ext_factor", "extrapolation_factor"),
    ("rope.scaling.yarn_attn_factor", "attn_factor"),
    ("rope.scaling.yarn_beta_fast", "beta_fast"),
    ("rope.scaling.yarn_beta_slow", "beta_slow"),
];

/// Field with the kind of RoPE scaling.
const ROPE_TYPE: &str = "rope_type";

/// Default soft cap of attention and router logits.
const DEFAULT_SOFT_CAP: f32 = 30.0;

pub(crate) struct Grok;

/// Description of [`Grok`].
pub(crate) static GROK: Description = Description {
    classes: &["Grok1ForCausalLM", "GrokForCausalLM"],
    architecture: "grok",
    model_type: "grok-1",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["grok-2"],
    tensor_names: &[GROK1_NAMES, GROK2_NAMES, LLAMA_LIKE],
    config_fields: FIELDS,
    ..Description::DECODER
};

impl Converter for Grok {
    fn description(&self) -> &'static Description {
        &GROK
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        for field in ["attn_logit_softcapping", "router_logit_softcapping"] {
            keys.set(field, config.f32(&[field])?.unwrap_or(DEFAULT_SOFT_CAP));
        }
        let cap = config.f32(&["final_logit_softcapping"])?;
        keys.set_f32(key::FINAL_LOGIT_SOFTCAPPING, cap.filter(|&cap| cap != 0.0));
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(&["moe_intermediate_size"])?);
        let kind = config.find(&[ROPE_TYPE]).and_then(|(_, kind)| kind.as_str());
        if matches!(kind, Some("yarn" | "original")) {
            keys.set(key::ROPE_SCALING_TYPE, "yarn");
            for (key, field) in YARN {
                match key.ends_with("context_length") {
                    true => keys.set(key, config.require_u32(&[field], "a parameter of YaRN")?),
                    false => keys.set(key, config.require_f32(&[field], "a parameter of YaRN")?),
                }
            }
        }
        let length = config.u32(&["attn_temperature_len"])?.filter(|&length| length > 0);
        keys.set_u32(key::ATTENTION_TEMPERATURE_LENGTH, length);
        let default = || Ok(f64::from(hparams::head_dim(config)?).powf(-0.5) as f32);
        let scale = config.f32(&["attn_output_multiplier"])?;
        keys.set(key::ATTENTION_OUTPUT_SCALE, scale.map_or_else(default, Ok::<_, Error>)?);
        let require = |field: &str| {
            config.require_f32(&[field], "a multiplier of the embedding or the logits")
        };
        keys.set(key::EMBEDDING_SCALE, require("embedding_multiplier_scale")?);
        keys.set(key::LOGIT_SCALE, require("output_multiplier_scale")?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (hf_name, gguf_name) in GROK1_EXPERTS {
            let Some(&[block, index]) = captures(hf_name, name).as_deref() else { continue };
            let slot = ExpertSlot { index, count: hparams::expert_count(config)? };
            return Ok(Some(Mapping::slot(format!("blk.{block}.{gguf_name}.weight"), slot)));
        }
        map_mixtral_expert(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = match has(model, "blk.0.layer_output_norm.weight") {
            true => exported.patterns(GROK1_EXPERTS.map(|(name, _)| name)),
            false => exported
                .without_names(GROK1_NAMES)
                .class("GrokForCausalLM", "grok-2")
                .patterns(mixtral_expert_patterns()),
        };
        if number(model, key::ROPE_SCALING_FACTOR).is_none() {
            return Some(exported);
        }
        Some(exported.fields(&YARN).without(&[key::ROPE_SCALING_TYPE]).set(ROPE_TYPE, "yarn"))
    }
}
