//! Conversion of Maple: as Mellum 2, with a clamp of the SwiGLU experts.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, export, hparams, moe, rope};
use crate::mellum::convert::{Mellum, export, sliding_window_keys};
use crate::qwen2moe::convert::EXPERT_NAMES;
use crate::schema::key;

/// Clamp of gate and up projections, a constant of the class.
const SWIGLU_CLAMP: f32 = 7.0;

pub(crate) struct Maple;

/// Description of [`Maple`].
pub(crate) static MAPLE: Description = Description {
    classes: &["MapleForCausalLM"],
    architecture: "maple",
    model_type: "maple",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    required_flags: &[("norm_topk_prob", true), ("nope_on_global_attention", true)],
    ..Description::DECODER
};

impl Converter for Maple {
    fn description(&self) -> &'static Description {
        &MAPLE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        Mellum.complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        let rotary_dims = rope::rotated_dims(config, hparams::head_dim(config)?, 1.0)?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        sliding_window_keys(config, keys)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        let clamps = vec![SWIGLU_CLAMP; hparams::block_count(config)? as usize];
        keys.set(key::SWIGLU_CLAMP_EXP, Array::from(&clamps[..]));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name, moe::ROUTER_BIAS)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = export(model, exported)
            .set("norm_topk_prob", true)
            .set("nope_on_global_attention", true)
            .set_some("partial_rotary_factor", export::rotated_share(model));
        Some(exported)
    }
}
