//! Conversion of Granite with sliding-window attention, dense and MoE: gate and up projections of
//! experts stay fused, and flags per layer tell which layers use the window and which use RoPE.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, has};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{Converter, Description, Exported, Mapping, hparams, sliding_window};
use crate::granite::convert::{GRANITE, Granite, granite_keys};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.block_sparse_moe.router", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.shared_mlp.input_linear", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.shared_mlp.output_linear", "blk.{}.ffn_down_shexp"),
];

/// Tensors whose Hugging Face and GGUF names differ in their last segment.
const PARAMETERS: [(&str, &str); 5] = [
    ("model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"),
    ("model.layers.{}.block_sparse_moe.experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight"),
    ("model.layers.{}.block_sparse_moe.experts.down_proj", "blk.{}.ffn_down_exps.weight"),
    ("model.layers.{}.block_sparse_moe.input_linear.weight", "blk.{}.ffn_gate_up_exps.weight"),
    ("model.layers.{}.block_sparse_moe.output_linear.weight", "blk.{}.ffn_down_exps.weight"),
];

/// Class of the dense models.
const DENSE_CLASS: &str = "GraniteSWAForCausalLM";

/// Class of the MoE models.
const MOE_CLASS: &str = "GraniteMoeSWAForCausalLM";

/// Field with the FFN size of the shared expert.
const SHARED_LENGTH: &str = "shared_intermediate_size";

/// Field with a flag per layer, 1 where the layer uses RoPE.
const ROPE_LAYERS: &str = "no_rope_layers";

pub(crate) struct GraniteSwa;

/// Description of [`GraniteSwa`].
pub(crate) static GRANITE_SWA: Description = Description {
    classes: &[DENSE_CLASS, MOE_CLASS],
    architecture: "granite_swa",
    model_type: "granite_swa",
    tensor_names: &[NAMES, LLAMA_LIKE],
    ..GRANITE
};

impl Converter for GraniteSwa {
    fn description(&self) -> &'static Description {
        &GRANITE_SWA
    }

    fn base(&self) -> &'static dyn Converter {
        &Granite
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default("sliding_window", 128);
        Granite.complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        // llama.cpp writes the FFN size of the shared expert last.
        let mut without_shared = config.clone();
        without_shared.set(SHARED_LENGTH, Value::Null);
        granite_keys(&without_shared, keys)?;
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
        let layers = match config.find(&["layer_types"]) {
            Some(_) => sliding_window::layers(config, 0)?,
            None => (0..hparams::block_count(config)?).map(|layer| layer % 4 != 0).collect(),
        };
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&layers[..]));
        if let Some((_, flags)) = config.find(&[ROPE_LAYERS]) {
            let flags = flags.as_array().into_iter().flatten();
            let uses_rope: Vec<bool> = flags.map(|flag| *flag != 0).collect();
            keys.set(key::ATTENTION_ROPE_PATTERN, Array::from(&uses_rope[..]));
        }
        let shared_length = config.u32(&[SHARED_LENGTH])?.filter(|&length| length != 0);
        keys.set_u32(key::EXPERT_SHARED_FEED_FORWARD_LENGTH, shared_length);
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let mut parameters = PARAMETERS.iter();
        Ok(parameters.find_map(|(hf_name, gguf_name)| {
            Some(Mapping::one(filled(gguf_name, &captures(hf_name, name)?), []))
        }))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = match has(model, "blk.0.ffn_gate_inp.weight") {
            true => exported.class(MOE_CLASS, "granitemoe_swa"),
            false => exported.class(DENSE_CLASS, "granite_swa"),
        };
        let uses_rope = model.metadata().array("granite_swa.attention.rope_pattern");
        let flag = |flag: gguf::Value| u32::from(flag.to_bool() == Some(true));
        let exported = exported
            .patterns(PARAMETERS.map(|(name, _)| name))
            .fields(&[("expert_count", "num_local_experts")])
            .set_some(SHARED_LENGTH, count(model, key::EXPERT_SHARED_FEED_FORWARD_LENGTH))
            .set_some(
                ROPE_LAYERS,
                uses_rope.map(|flags| flags.iter().map(flag).collect::<Vec<_>>()),
            );
        Some(sliding_window::export_of_pattern(model, exported))
    }
}
