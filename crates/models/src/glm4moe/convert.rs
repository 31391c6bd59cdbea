//! Conversion of GLM 4.5, GLM 4.6 and Solar Open. `block_count` includes the multi-token prediction
//! layers; the router is always sigmoid.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::{count, has, rotated_share};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, defaults, hparams, moe, mtp, rope,
};
use crate::dots1::convert::export_moe;
use crate::schema::key;

const NAMES: Table = &[("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm")];

/// `expert_gating_func` of the sigmoid router.
const SIGMOID: u32 = 2;

pub(crate) struct Glm4Moe;

/// Description of [`Glm4Moe`].
pub(crate) static GLM4_MOE: Description = Description {
    classes: &["Glm4MoeForCausalLM", "Glm4vMoeForConditionalGeneration"],
    architecture: "glm4moe",
    model_type: "glm4_moe",
    vocabulary: VocabularyKind::Glm4Moe,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    tensor_names: &[NAMES, mtp::NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: moe::ROUTED_FIELDS,
    ..Description::DECODER
};

impl Converter for Glm4Moe {
    fn description(&self) -> &'static Description {
        &GLM4_MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        config.default("first_k_dense_replace", 1);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let mtp_layers = config.u32(&[mtp::COUNT])?;
        keys.stated(config)?;
        keys.set(
            key::BLOCK_COUNT,
            hparams::block_count(config)?.saturating_add(mtp_layers.unwrap_or(0)),
        );
        let rotary_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 0.5)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?);
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["first_k_dense_replace"])?);
        keys.set(key::EXPERT_GATING_FUNC, SIGMOID);
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
        if let Some(norm) = config.bool("norm_topk_prob")? {
            keys.set(key::EXPERT_WEIGHTS_NORM, norm);
        }
        keys.set_u32(key::NEXTN_PREDICT_LAYERS, mtp_layers);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name, moe::ROUTER_BIAS)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS);
        let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers.unwrap_or(0))?;
        let exported = export_moe(model, exported)
            .without(&[key::BLOCK_COUNT])
            .set("num_hidden_layers", blocks)
            .set_some(mtp::COUNT, mtp_layers)
            .set("use_qk_norm", has(model, "blk.0.attn_q_norm.weight"))
            .set("attention_bias", has(model, "blk.0.attn_q.bias"))
            .set_some("partial_rotary_factor", rotated_share(model));
        Some(exported)
    }
}

/// Solar Open, with a vocabulary of its own.
pub(crate) struct SolarOpen;

/// Description of [`SolarOpen`].
pub(crate) static SOLAR_OPEN: Description = Description {
    classes: &["SolarOpenForCausalLM"],
    model_type: "solar_open",
    vocabulary: VocabularyKind::SolarOpen,
    pre_tokenizers: &["solar-open", "qwen2"],
    ..GLM4_MOE
};

impl Converter for SolarOpen {
    fn description(&self) -> &'static Description {
        &SOLAR_OPEN
    }

    fn base(&self) -> &'static dyn Converter {
        &Glm4Moe
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    // Exports have the class of `Glm4Moe`.
    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}
