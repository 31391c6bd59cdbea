//! Conversion of SmallThinker. The sliding window is written only if some layer has one.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, defaults, export, moe};
use crate::schema::key;

const NAMES: Table = &[("model.layers.{}.block_sparse_moe.primary_router", "blk.{}.ffn_gate_inp")];

/// Expert matrices: checkpoint name of one, GGUF name of all.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.block_sparse_moe.experts.{}.down.weight", "ffn_down_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.gate.weight", "ffn_gate_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.up.weight", "ffn_up_exps"),
];

const COUNT: &[&str] = &["moe_num_primary_experts"];

const WIDTH: &[&str] = &["moe_ffn_hidden_size"];

const LAYOUT: &str = "sliding_window_layout";

const SOFTMAX: u32 = 1;

const SIGMOID: u32 = 2;

pub(crate) struct Smallthinker;

/// Description of [`Smallthinker`].
pub(crate) static SMALLTHINKER: Description = Description {
    classes: &["SmallThinkerForCausalLM"],
    architecture: "smallthinker",
    model_type: "smallthinker",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "moe_num_primary_experts"),
        (key::EXPERT_USED_COUNT, "moe_num_active_primary_experts"),
        (key::EXPERT_FEED_FORWARD_LENGTH, "moe_ffn_hidden_size"),
        (key::ATTENTION_SLIDING_WINDOW, "sliding_window_size"),
    ],
    ..Description::DECODER
};

impl Converter for Smallthinker {
    fn description(&self) -> &'static Description {
        &SMALLTHINKER
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = config.require_u32(WIDTH, "the FFN size of an expert")?;
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_COUNT, config.u32(COUNT)?);
        keys.set_u32(key::EXPERT_USED_COUNT, config.u32(&["moe_num_active_primary_experts"])?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, width);
        keys.set(key::FEED_FORWARD_LENGTH, width);
        let is_softmax = config.bool("moe_primary_router_apply_softmax")? == Some(true);
        keys.set(key::EXPERT_GATING_FUNC, if is_softmax { SOFTMAX } else { SIGMOID });
        let layout = config.find(&[LAYOUT]).and_then(|(_, layers)| layers.as_array());
        let has_window = layout.is_some_and(|layers| layers.iter().any(|layer| *layer != 0));
        let window = config.u32(&["sliding_window_size"])?;
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, window.filter(|&len| has_window && len > 0));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::one_of(&EXPERTS, name, || config.require_u32(COUNT, "the number of experts"))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let is_softmax = export::count(model, key::EXPERT_GATING_FUNC) == Some(SOFTMAX.into());
        let blocks = export::count(model, key::BLOCK_COUNT)?.min(1 << 16);
        // The pattern of runtimes: the first of each four layers has full attention.
        let has_window = export::count(model, key::ATTENTION_SLIDING_WINDOW).is_some();
        let layout =
            (0..blocks).map(|layer| u64::from(has_window && layer % 4 != 0)).map(Value::from);
        let exported = exported
            .patterns(EXPERTS.map(|(name, _)| name))
            .without(&[key::FEED_FORWARD_LENGTH])
            .set("moe_primary_router_apply_softmax", is_softmax)
            .set(LAYOUT, layout.collect::<Vec<_>>());
        Some(exported)
    }
}
