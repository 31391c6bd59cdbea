//! Conversion of Hunyuan 3: MTP layers are counted in `block_count`, and the selection bias of the
//! router has no suffix.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::{count, has};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, block_of, captures};
use crate::convert::{Converter, Description, Exported, Mapping, defaults, hparams, moe, mtp};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.mlp.router.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_mlp.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_mlp.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_mlp.down_proj", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.final_layernorm", "blk.{}.nextn.shared_head_norm"),
];

/// Selection bias of the router.
const ROUTER_BIAS: &str = "model.layers.{}.mlp.expert_bias";

/// Value of `expert_gating_func` for a sigmoid router.
const SIGMOID: u32 = 2;

pub(crate) struct HyV3;

/// Description of [`HyV3`].
pub(crate) static HY_V3: Description = Description {
    classes: &["HYV3ForCausalLM"],
    architecture: "hy_v3",
    model_type: "hy_v3",
    pre_tokenizers: &["hy_v3", "hunyuan"],
    tensor_names: &[NAMES, moe::BESIDE_SHARED, mtp::NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_WEIGHTS_NORM, "route_norm"),
        (key::EXPERT_WEIGHTS_SCALE, "router_scaling_factor"),
    ],
    ..Description::DECODER
};

impl Converter for HyV3 {
    fn description(&self) -> &'static Description {
        &HY_V3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let mtp_layers = config.u32(&[mtp::COUNT])?.filter(|&count| count > 0);
        keys.stated(config)?;
        keys.set(
            key::BLOCK_COUNT,
            hparams::block_count(config)?.saturating_add(mtp_layers.unwrap_or(0)),
        );
        let expert_length = moe::width(config)?;
        let shared = config.u32(&["num_shared_experts"])?.unwrap_or(1);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, expert_length);
        keys.set(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, expert_length.saturating_mul(shared));
        keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("route_norm")?.unwrap_or(true));
        keys.set(key::EXPERT_WEIGHTS_SCALE, config.f32(&["router_scaling_factor"])?.unwrap_or(1.0));
        keys.set(key::EXPERT_GATING_FUNC, SIGMOID);
        keys.set_u32(key::NEXTN_PREDICT_LAYERS, mtp_layers);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let blocks = hparams::block_count(config)?;
        let mtp_layers = config.u32(&[mtp::COUNT])?.unwrap_or(0);
        if block_of(name).is_some_and(|block| block >= blocks.saturating_add(mtp_layers)) {
            return Ok(Some(Mapping::Unknown));
        }
        if let Some(&[block]) = captures(ROUTER_BIAS, name).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.exp_probs_b"), [])));
        }
        moe::mapping(config, name, || moe::width(config))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let mtp_layers = count(model, key::NEXTN_PREDICT_LAYERS);
        let blocks = count(model, key::BLOCK_COUNT)?.checked_sub(mtp_layers.unwrap_or(0))?;
        let expert_length =
            count(model, key::EXPERT_FEED_FORWARD_LENGTH).filter(|&length| length > 0)?;
        let shared = count(model, key::EXPERT_SHARED_FEED_FORWARD_LENGTH)? / expert_length;
        let exported = exported
            .patterns([ROUTER_BIAS])
            .patterns(moe::one_by_one())
            .without(&[key::BLOCK_COUNT])
            .set("num_hidden_layers", blocks)
            .set("num_shared_experts", shared)
            .set("qk_norm", has(model, "blk.0.attn_q_norm.weight"))
            .set_some(mtp::COUNT, mtp_layers);
        Some(exported)
    }
}
