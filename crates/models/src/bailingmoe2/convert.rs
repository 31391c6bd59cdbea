//! Conversion of `BailingMoeV2ForCausalLM` and `SarvamMoEForCausalLM`. `block_count` includes the
//! multi-token prediction layers. Sarvam's selection biases are shifted to a mean of 0.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::bailingmoe::convert::{CONFIG_FIELDS, NAMES};
use crate::convert::export::{count, has, rotated_share};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{Converter, Description, Exported, Mapping, Values, hparams, moe, mtp, rope};
use crate::schema::key;

pub(crate) const ROUTER_BIAS: &str = "model.layers.{}.mlp.gate.expert_bias";

/// Names in addition to those of the first generation: the fused QKV projection and multi-token
/// prediction layers.
const V2_NAMES: Table = &[
    ("model.layers.{}.attention.query_key_value", "blk.{}.attn_qkv"),
    ("model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"),
    ("model.layers.{}.eh_proj", "blk.{}.nextn.eh_proj"),
    ("model.layers.{}.enorm", "blk.{}.nextn.enorm"),
    ("model.layers.{}.hnorm", "blk.{}.nextn.hnorm"),
];

pub(crate) struct BailingMoe2;

/// Description of [`BailingMoe2`].
pub(crate) static BAILING_MOE2: Description = Description {
    classes: &["BailingMoeV2ForCausalLM"],
    architecture: "bailingmoe2",
    model_type: "bailing_moe_v2",
    pre_tokenizers: &["bailingmoe2"],
    tensor_names: &[NAMES, V2_NAMES, moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: CONFIG_FIELDS,
    required_flags: &[("use_bias", false), ("use_qkv_bias", false)],
    ..Description::DECODER
};

impl Converter for BailingMoe2 {
    fn description(&self) -> &'static Description {
        &BAILING_MOE2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        v2_keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name, ROUTER_BIAS)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS);
        let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers.unwrap_or(0))?;
        let router = (count(model, key::EXPERT_GATING_FUNC) == Some(2)).then_some("sigmoid");
        let exported = exported
            .patterns([ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .fields(&[
                ("expert_weights_scale", "routed_scaling_factor"),
                ("expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
            ])
            .without(&[key::BLOCK_COUNT])
            .set("num_hidden_layers", blocks)
            .set("use_qk_norm", has(model, "blk.0.attn_q_norm.weight"))
            .set_some(mtp::COUNT, mtp_layers)
            .set_some("score_function", router)
            .set_some("partial_rotary_factor", rotated_share(model));
        Some(exported)
    }
}

fn v2_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let mtp_layers = config.u32(&[mtp::COUNT])?;
    keys.stated(config)?;
    keys.set(
        key::BLOCK_COUNT,
        hparams::block_count(config)?.saturating_add(mtp_layers.unwrap_or(0)),
    );
    let rotary_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 0.5)?;
    keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
    keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["first_k_dense_replace"])?);
    keys.vocab_size(config)?;
    let width = moe::width(config)?;
    let shared = config.u32(&["num_shared_experts"])?.unwrap_or(0);
    let stated = config.u32(&["moe_shared_expert_intermediate_size"])?;
    keys.set(key::EXPERT_FEED_FORWARD_LENGTH, width);
    keys.set(
        key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
        stated.unwrap_or(width.saturating_mul(shared)),
    );
    keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
    keys.set(key::EXPERT_SHARED_COUNT, shared);
    keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("norm_topk_prob")?.unwrap_or(false));
    keys.set_u32(key::NEXTN_PREDICT_LAYERS, mtp_layers);
    Ok(())
}

/// Field set from the checkpoint: the mean of the selection bias of each layer.
const BIAS_MEANS: &str = "expert_bias_means";

/// Sarvam: RoPE covers whole heads, and selection biases are shifted to a mean of 0.
pub(crate) struct Sarvam;

/// Description of [`Sarvam`].
pub(crate) static SARVAM: Description = Description {
    classes: &["SarvamMoEForCausalLM", "modeling_sarvam_moe.SarvamMoEForCausalLM"],
    model_type: "sarvam_moe",
    pre_tokenizers: &["sarvam-moe"],
    ..BAILING_MOE2
};

impl Converter for Sarvam {
    fn description(&self) -> &'static Description {
        &SARVAM
    }

    fn base(&self) -> &'static dyn Converter {
        &BailingMoe2
    }

    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)?;
        let mut means = Vec::new();
        for block in 0..blocks {
            let bias = values.find(&filled(ROUTER_BIAS, &[block]))?.unwrap_or_default();
            let sum: f64 = bias.iter().copied().map(f64::from).sum();
            means.push((sum / bias.len().max(1) as f64) as f32);
        }
        config.set(BIAS_MEANS, means);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        v2_keys(config, keys)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let mapping = moe::routed(config, name, ROUTER_BIAS)?;
        let means = config.f32s(BIAS_MEANS)?.unwrap_or_default();
        let Some(&[block]) = captures(ROUTER_BIAS, name).as_deref() else { return Ok(mapping) };
        let Some(mean) = means.get(block as usize) else { return Ok(mapping) };
        let steps = [Step::Map(Function::Plus(-mean))];
        Ok(Some(Mapping::one(format!("blk.{block}.exp_probs_b.bias"), steps)))
    }

    // Exports have the class of `BailingMoe2`.
    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}
