//! Conversion of Jamba: periods and offsets of config.json tell which layers are attention layers
//! and which are MoE; the number of KV heads of an SSM layer is 0.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export::{count, has};
use crate::convert::keys::Keys;
use crate::convert::ssm::Sizes;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, Mapping, VocabularyKind, export, hparams, ssm,
};
use crate::schema::{HyperParameters, key};

const NAMES: Table = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.feed_forward.router", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down"),
];

/// Matrices of an expert, and their stacked GGUF tensors.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.feed_forward.experts.{}.gate_proj.weight", "ffn_gate_exps"),
    ("model.layers.{}.feed_forward.experts.{}.down_proj.weight", "ffn_down_exps"),
    ("model.layers.{}.feed_forward.experts.{}.up_proj.weight", "ffn_up_exps"),
];

pub(crate) struct Jamba;

/// Description of [`Jamba`].
pub(crate) static JAMBA: Description = Description {
    classes: &["JambaForCausalLM"],
    architecture: "jamba",
    model_type: "jamba",
    vocabulary: VocabularyKind::Jamba,
    tensor_names: &[NAMES, ssm::NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::SSM_CONV_KERNEL, "mamba_d_conv"),
        (key::SSM_STATE_SIZE, "mamba_d_state"),
        (key::SSM_TIME_STEP_RANK, "mamba_dt_rank"),
    ],
    required_flags: &[("mamba_proj_bias", false), ("mamba_conv_bias", true)],
    ..Description::DECODER
};

impl Converter for Jamba {
    fn description(&self) -> &'static Description {
        &JAMBA
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        for (field, default) in [
            ("mamba_expand", 2),
            ("mamba_d_conv", 4),
            ("mamba_d_state", 16),
            ("attn_layer_period", 8),
            ("attn_layer_offset", 4),
            ("expert_layer_period", 2),
            ("expert_layer_offset", 1),
            ("num_experts", 16),
            ("num_experts_per_tok", 2),
        ] {
            config.default(field, default);
        }
        // `auto`, or missing.
        if config.find(&["mamba_dt_rank"]).is_none_or(|(_, rank)| !rank.is_u64()) {
            config.set("mamba_dt_rank", hparams::width(config)?.div_ceil(16));
        }
        config.default("rms_norm_eps", 1e-6);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let sizes = sizes(config)?;
        let blocks = hparams::block_count(config)?;
        let heads = i32::try_from(hparams::head_count_kv(config)?).unwrap_or(i32::MAX);
        let heads_kv = |layer| Ok(if is_in_pattern(config, layer, "attn")? { heads } else { 0 });
        let heads = (0..blocks).map(heads_kv).collect::<Result<Vec<i32>, Error>>()?;
        keys.set(key::BLOCK_COUNT, blocks);
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
        keys.set(key::SSM_CONV_KERNEL, sizes.kernel);
        keys.set(key::SSM_INNER_SIZE, sizes.inner);
        keys.set(key::SSM_STATE_SIZE, sizes.state);
        keys.set_u32(key::SSM_TIME_STEP_RANK, config.u32(&["mamba_dt_rank"])?);
        keys.set_f32(
            key::ATTENTION_LAYER_NORM_RMS_EPSILON,
            config.f32(&["layer_norm_epsilon", "rms_norm_eps"])?,
        );
        keys.set(key::EXPERT_COUNT, hparams::expert_count(config)?);
        keys.set_u32(key::EXPERT_USED_COUNT, config.u32(&["num_experts_per_tok"])?);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (hf_name, gguf_name) in EXPERTS {
            let numbers = captures(hf_name, name);
            let Some(&[block, index]) = numbers.as_deref() else { continue };
            // A layer that is not MoE has one expert, its dense FFN.
            if !is_in_pattern(config, block, "expert")? {
                let gguf_name = gguf_name.trim_end_matches("_exps");
                let is_first = index == 0;
                let mapping = Mapping::one(format!("blk.{block}.{gguf_name}.weight"), []);
                return Ok(Some(if is_first { mapping } else { Mapping::Unknown }));
            }
            let count = hparams::expert_count(config)?;
            let name = format!("blk.{block}.{gguf_name}.weight");
            return Ok(Some(Mapping::slot(name, ExpertSlot { index, count })));
        }
        Ok(sizes(config)?.mapping(name))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let heads =
            |layer: &u64| hyper.u64_in_layer(key::ATTENTION_HEAD_COUNT_KV, *layer).unwrap_or(0);
        let is_routed = |layer: &u64| has(model, &format!("blk.{layer}.ffn_gate_inp.weight"));
        // Offset and period of a kind of layer.
        let pattern = |layers: Vec<u64>| match layers[..] {
            [first, second, ..] => (first, second - first),
            [first] => (first, blocks.max(1)),
            [] => (blocks, blocks.max(1)),
        };
        let attention = pattern((0..blocks).filter(|layer| heads(layer) > 0).collect());
        let routed = pattern((0..blocks).filter(is_routed).collect());
        let exported = exported
            .patterns(EXPERTS.map(|(name, _)| name))
            .patterns(ssm::parameters())
            .without(&[key::ATTENTION_HEAD_COUNT_KV])
            .set("num_key_value_heads", (0..blocks).map(|layer| heads(&layer)).max())
            .set("attn_layer_offset", attention.0)
            .set("attn_layer_period", attention.1)
            .set("expert_layer_offset", routed.0)
            .set("expert_layer_period", routed.1)
            .set_some(
                "mamba_expand",
                export::ratio(model, key::SSM_INNER_SIZE, "embedding_length"),
            );
        Some(exported)
    }
}

/// Reads the sizes of the Mamba layers.
fn sizes(config: &Config) -> Result<Sizes, Error> {
    let number = |field: &str| config.require_u32(&[field], "a size of the Mamba layers");
    let inner = number("mamba_expand")?.saturating_mul(hparams::width(config)?);
    let (kernel, state) = (number("mamba_d_conv")?, number("mamba_d_state")?);
    Ok(Sizes { inner, kernel, state, heads: None })
}

/// Returns whether a layer is in the pattern of `{kind}_layer_offset` and `{kind}_layer_period`.
fn is_in_pattern(config: &Config, layer: u32, kind: &str) -> Result<bool, Error> {
    let number = |part: &str| config.u32(&[&format!("{kind}_layer_{part}")]);
    let period = number("period")?.unwrap_or(1).max(1);
    let offset = number("offset")?.unwrap_or(0);
    Ok(layer >= offset && (layer - offset).is_multiple_of(period))
}
