//! Granite 4 and Bamba: state spaces in most layers, attention in some.

use crate::schema::Hyper;
use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::hparams::Keys;
use crate::convert::ssm::Sizes;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, export, hparams, ssm,
};
use crate::granite::convert::{SCALES, granite_keys};
use crate::granitemoe::convert::{EXPERT_NAMES, GRANITE_MOE, GraniteMoe};
use crate::schema::key;

const GRANITE: &str = "GraniteMoeHybridForCausalLM";

const BAMBA: &str = "BambaForCausalLM";

const NAMES: Table = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down"),
];

const LAYER_TYPES: &str = "layer_types";

/// A state space has no longest context; programs want a number.
const CONTEXT: u32 = 1 << 20;

const FINETUNED: &str = "rope.scaling.finetuned";

pub(crate) struct GraniteHybrid;

/// Description of [`GraniteHybrid`].
pub(crate) static GRANITE_HYBRID: Description = Description {
    classes: &[GRANITE, BAMBA],
    architecture: "granitehybrid",
    model_type: "granitemoehybrid",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    tensor_names: &[NAMES, EXPERT_NAMES, ssm::NAMES, LLAMA_LIKE],
    config_fields: FIELDS,
    required_flags: &[("mamba_proj_bias", false), ("mamba_conv_bias", true)],
    ..GRANITE_MOE
};

impl Converter for GraniteHybrid {
    fn description(&self) -> &'static Description {
        &GRANITE_HYBRID
    }

    fn base(&self) -> &'static dyn Converter {
        &GraniteMoe
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        for (field, usual) in [
            ("mamba_d_conv", 4),
            ("mamba_d_state", 256),
            ("mamba_n_groups", 1),
            ("mamba_n_heads", 128),
            ("mamba_expand", 2),
        ] {
            config.default(field, usual);
        }
        if config.find(&[LAYER_TYPES]).is_none() {
            let blocks = hparams::block_count(config)?;
            let layers = attention_layers(config, blocks)?;
            let kind = |layer| if layers.contains(&layer) { "attention" } else { "mamba" };
            config.set(LAYER_TYPES, (0..blocks).map(kind).collect::<Vec<_>>());
        }
        if config.class()? == BAMBA {
            config.default("rms_norm_eps", 1e-5);
            return hparams::default_attention(config);
        }
        GraniteMoe.complete_config(config)
    }

    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        if has_attention(config).contains(&false) {
            return None;
        }
        let asked = config.u32(&["num_experts_per_tok"]).ok().flatten().unwrap_or(0);
        Some(if asked > 0 { &GraniteMoeWithoutStates } else { &GraniteWithoutStates })
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        granite_keys(config, keys)?;
        let sizes = sizes(config)?;
        let (heads, groups) = sizes.heads.unwrap_or_default();
        keys.set(key::SSM_CONV_KERNEL, sizes.kernel);
        keys.set(key::SSM_STATE_SIZE, sizes.state);
        keys.set(key::SSM_GROUP_COUNT, groups);
        keys.set(key::SSM_INNER_SIZE, sizes.inner);
        keys.set(key::SSM_TIME_STEP_RANK, heads);
        keys.set_u32(key::ROPE_DIMENSION_COUNT, config.u32(&["attn_rotary_emb"])?);
        let layers = has_attention(config);
        let heads = i32::try_from(hparams::head_count_kv(config)?).unwrap_or(i32::MAX);
        let of_layer = |has: &bool| if *has { heads } else { 0 };
        let heads: Vec<i32> = layers.iter().map(of_layer).collect();
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
        let rotates = config.class()? == BAMBA || !layers.contains(&false);
        keys.set(FINETUNED, rotates);
        if !rotates {
            keys.set(key::CONTEXT_LENGTH, CONTEXT);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        match sizes(config)?.mapping(name) {
            None => GraniteMoe.map_tensor(config, name),
            found => Ok(found),
        }
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = Hyper::of(model.metadata()).ok()?;
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let heads: Vec<u64> = (0..blocks)
            .map(|layer| hyper.u64_in(key::ATTENTION_HEAD_COUNT_KV, layer).unwrap_or(0))
            .collect();
        let kind = |heads: &u64| if *heads > 0 { "attention" } else { "mamba" };
        let is_bamba = hyper.stated(FINETUNED).and_then(|value| value.to_bool()) == Some(true);
        let exported = exported
            .first(ssm::parameters())
            .without(&[key::ATTENTION_HEAD_COUNT_KV])
            .set("num_key_value_heads", heads.iter().copied().max().unwrap_or(0))
            .set_some(
                "mamba_expand",
                export::ratio(model, key::SSM_INNER_SIZE, "embedding_length"),
            );
        if !is_bamba {
            let kinds: Vec<_> = heads.iter().map(kind).collect();
            let exported = GraniteMoe.export(model, exported.without_names(NAMES))?;
            return Some(exported.class(GRANITE, "granitemoehybrid").set(LAYER_TYPES, kinds));
        }
        let attended = (0..blocks).zip(&heads).filter(|(_, heads)| **heads > 0);
        let layers: Vec<u64> = attended.map(|(layer, _)| layer).collect();
        let rotated = count(model, key::ROPE_DIMENSION_COUNT);
        Some(
            exported
                .class(BAMBA, "bamba")
                .set("attn_layer_indices", layers)
                .set_some("attn_rotary_emb", rotated),
        )
    }
}

const FIELDS: &[(&str, &str)] = &[
    SCALES[0],
    SCALES[1],
    SCALES[2],
    SCALES[3],
    (key::SSM_CONV_KERNEL, "mamba_d_conv"),
    (key::SSM_STATE_SIZE, "mamba_d_state"),
    (key::SSM_GROUP_COUNT, "mamba_n_groups"),
    (key::SSM_TIME_STEP_RANK, "mamba_n_heads"),
];

/// The layers with attention as older configurations have them: listed, or by a period.
fn attention_layers(config: &Config, blocks: u32) -> Result<Vec<u32>, Error> {
    if let Some((_, listed)) = config.find(&["attn_layer_indices"]) {
        let listed = listed.as_array().into_iter().flatten().filter_map(Value::as_u64);
        return Ok(listed.filter_map(|layer| u32::try_from(layer).ok()).collect());
    }
    let Some(period) = config.u32(&["attn_layer_period"])?.filter(|&period| period > 0) else {
        return Ok(Vec::new());
    };
    let offset = config.u32(&["attn_layer_offset"])?.unwrap_or(0);
    Ok((0..blocks).filter(|layer| layer % period == offset).collect())
}

/// Which layers have attention.
fn has_attention(config: &Config) -> Vec<bool> {
    let kinds = config.find(&[LAYER_TYPES]).and_then(|(_, kinds)| kinds.as_array());
    let is_attention = |kind: &Value| kind == "attention" || kind == "full_attention";
    kinds.into_iter().flatten().map(is_attention).collect()
}

fn sizes(config: &Config) -> Result<Sizes, Error> {
    let number = |field: &str| config.require_u32(&[field], "a size of the state space");
    let inner = number("mamba_expand")?.saturating_mul(hparams::width(config)?);
    Ok(Sizes {
        inner,
        kernel: number("mamba_d_conv")?,
        state: number("mamba_d_state")?,
        heads: Some((number("mamba_n_heads")?, number("mamba_n_groups")?)),
    })
}

/// Granite 4 without state-space layers, whose architecture is `granite`.
struct GraniteWithoutStates;

/// Description of [`GraniteWithoutStates`].
pub(crate) static GRANITE_WITHOUT_STATES: Description =
    Description { architecture: "granite", ..GRANITE_HYBRID };

impl Converter for GraniteWithoutStates {
    fn description(&self) -> &'static Description {
        &GRANITE_WITHOUT_STATES
    }

    fn base(&self) -> &'static dyn Converter {
        &GraniteHybrid
    }
}

/// Granite 4 with experts and without state-space layers, whose architecture is `granitemoe`.
struct GraniteMoeWithoutStates;

/// Description of [`GraniteMoeWithoutStates`].
pub(crate) static GRANITE_MOE_WITHOUT_STATES: Description =
    Description { architecture: "granitemoe", ..GRANITE_HYBRID };

impl Converter for GraniteMoeWithoutStates {
    fn description(&self) -> &'static Description {
        &GRANITE_MOE_WITHOUT_STATES
    }

    fn base(&self) -> &'static dyn Converter {
        &GraniteHybrid
    }
}
