//! Conversion of Granite 4 and Bamba: the number of KV heads of a layer is 0 where it is a Mamba 2
//! layer. Granite 4 models without Mamba 2 layers become `granite` or `granitemoe`.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::ssm::Sizes;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, defaults, export, hparams, ssm,
};
use crate::granite::convert::{MULTIPLIERS, granite_keys};
use crate::granitemoe::convert::{EXPERT_NAMES, GRANITE_MOE, GraniteMoe};
use crate::schema::{HyperParameters, key};

/// Class of Granite 4.
const GRANITE_CLASS: &str = "GraniteMoeHybridForCausalLM";

/// Class of Bamba.
const BAMBA_CLASS: &str = "BambaForCausalLM";

const NAMES: Table = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.{}.pre_ff_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down"),
];

/// Field with the kind of each layer.
const LAYER_TYPES: &str = "layer_types";

/// Context length of models without positions, which have no limit.
const NOPE_CONTEXT: u32 = 1 << 20;

/// Key that tells whether attention uses RoPE.
const FINETUNED: &str = "rope.scaling.finetuned";

pub(crate) struct GraniteHybrid;

/// Description of [`GraniteHybrid`].
pub(crate) static GRANITE_HYBRID: Description = Description {
    classes: &[GRANITE_CLASS, BAMBA_CLASS],
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
        for (field, default) in [
            ("mamba_d_conv", 4),
            ("mamba_d_state", 256),
            ("mamba_n_groups", 1),
            ("mamba_n_heads", 128),
            ("mamba_expand", 2),
        ] {
            config.default(field, default);
        }
        if config.find(&[LAYER_TYPES]).is_none() {
            let blocks = hparams::block_count(config)?;
            let attention = attention_layers(config, blocks)?;
            let kind = |layer| if attention.contains(&layer) { "attention" } else { "mamba" };
            config.set(LAYER_TYPES, (0..blocks).map(kind).collect::<Vec<_>>());
        }
        // Runtimes apply RoPE in these models if all layers are attention layers.
        let field = "position_embedding_type";
        let has_rope = !has_attention(config).contains(&false);
        if let Some(stated) = config
            .json()
            .get(field)
            .filter(|_| config.class().is_ok_and(|class| class != BAMBA_CLASS))
            && (stated == "rope") != has_rope
        {
            return Err(hparams::not_computed(config, field, stated));
        }
        if config.class()? == BAMBA_CLASS {
            config.default("rms_norm_eps", 1e-5);
            return defaults::attention(config);
        }
        GraniteMoe.complete_config(config)
    }

    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        if has_attention(config).contains(&false) {
            return None;
        }
        let experts_used = config.u32(&["num_experts_per_tok"]).ok().flatten().unwrap_or(0);
        Some(if experts_used > 0 { &GraniteMoeWithoutSsm } else { &GraniteWithoutSsm })
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
        let has_attention = has_attention(config);
        let heads = i32::try_from(hparams::head_count_kv(config)?).unwrap_or(i32::MAX);
        let heads_kv = |attends: &bool| if *attends { heads } else { 0 };
        let heads: Vec<i32> = has_attention.iter().map(heads_kv).collect();
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
        let uses_rope = config.class()? == BAMBA_CLASS || !has_attention.contains(&false);
        keys.set(FINETUNED, uses_rope);
        if !uses_rope {
            keys.set(key::CONTEXT_LENGTH, NOPE_CONTEXT);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        match sizes(config)?.mapping(name) {
            None => GraniteMoe.map_tensor(config, name),
            mapping => Ok(mapping),
        }
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let heads: Vec<u64> = (0..blocks)
            .map(|layer| hyper.u64_in_layer(key::ATTENTION_HEAD_COUNT_KV, layer).unwrap_or(0))
            .collect();
        let kind = |heads: &u64| if *heads > 0 { "attention" } else { "mamba" };
        let is_bamba = hyper.value(FINETUNED).and_then(|value| value.to_bool()) == Some(true);
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
            return Some(exported.class(GRANITE_CLASS, "granitemoehybrid").set(LAYER_TYPES, kinds));
        }
        let attention = (0..blocks).zip(&heads).filter(|(_, heads)| **heads > 0);
        let layers: Vec<u64> = attention.map(|(layer, _)| layer).collect();
        let rotary_dims = count(model, key::ROPE_DIMENSION_COUNT);
        Some(
            exported
                .class(BAMBA_CLASS, "bamba")
                .set("attn_layer_indices", layers)
                .set_some("attn_rotary_emb", rotary_dims),
        )
    }
}

/// Keys, and their config.json fields in exports.
const FIELDS: &[(&str, &str)] = &[
    MULTIPLIERS[0],
    MULTIPLIERS[1],
    MULTIPLIERS[2],
    MULTIPLIERS[3],
    (key::SSM_CONV_KERNEL, "mamba_d_conv"),
    (key::SSM_STATE_SIZE, "mamba_d_state"),
    (key::SSM_GROUP_COUNT, "mamba_n_groups"),
    (key::SSM_TIME_STEP_RANK, "mamba_n_heads"),
];

/// Returns the attention layers of older configurations, which list them or state a period.
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

/// Returns for each layer whether it is an attention layer.
fn has_attention(config: &Config) -> Vec<bool> {
    let kinds = config.find(&[LAYER_TYPES]).and_then(|(_, kinds)| kinds.as_array());
    let is_attention = |kind: &Value| kind == "attention" || kind == "full_attention";
    kinds.into_iter().flatten().map(is_attention).collect()
}

/// Reads the sizes of the Mamba 2 layers.
fn sizes(config: &Config) -> Result<Sizes, Error> {
    let number = |field: &str| config.require_u32(&[field], "a size of the Mamba layers");
    let inner = number("mamba_expand")?.saturating_mul(hparams::width(config)?);
    Ok(Sizes {
        inner,
        kernel: number("mamba_d_conv")?,
        state: number("mamba_d_state")?,
        heads: Some((number("mamba_n_heads")?, number("mamba_n_groups")?)),
    })
}

/// Granite 4 without Mamba 2 layers, whose architecture is `granite`.
struct GraniteWithoutSsm;

/// Description of [`GraniteWithoutSsm`].
pub(crate) static GRANITE_WITHOUT_SSM: Description =
    Description { architecture: "granite", ..GRANITE_HYBRID };

impl Converter for GraniteWithoutSsm {
    fn description(&self) -> &'static Description {
        &GRANITE_WITHOUT_SSM
    }

    fn base(&self) -> &'static dyn Converter {
        &GraniteHybrid
    }
}

/// Granite 4 MoE without Mamba 2 layers, whose architecture is `granitemoe`.
struct GraniteMoeWithoutSsm;

/// Description of [`GraniteMoeWithoutSsm`].
pub(crate) static GRANITE_MOE_WITHOUT_SSM: Description =
    Description { architecture: "granitemoe", ..GRANITE_HYBRID };

impl Converter for GraniteMoeWithoutSsm {
    fn description(&self) -> &'static Description {
        &GRANITE_MOE_WITHOUT_SSM
    }

    fn base(&self) -> &'static dyn Converter {
        &GraniteHybrid
    }
}
