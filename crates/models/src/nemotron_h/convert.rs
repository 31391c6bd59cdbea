//! Conversion of Nemotron-H. The layer kinds come from `hybrid_override_pattern` (letters) or
//! `layers_block_type` (names); the arrays of KV head counts and FFN widths are 0 in layers of
//! other kinds.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, has};
use crate::convert::keys::Keys;
use crate::convert::ssm::Sizes;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, Mapping, hparams, moe, steps};
use crate::registry;
use crate::schema::{HyperParameters, key};

pub(crate) const NAMES: Table = &[
    ("backbone.embeddings", "token_embd"),
    ("backbone.norm_f", "output_norm"),
    ("lm_head", "output"),
    ("backbone.layers.{}.norm", "blk.{}.attn_norm"),
    ("backbone.layers.{}.mixer.q_proj", "blk.{}.attn_q"),
    ("backbone.layers.{}.mixer.k_proj", "blk.{}.attn_k"),
    ("backbone.layers.{}.mixer.v_proj", "blk.{}.attn_v"),
    ("backbone.layers.{}.mixer.o_proj", "blk.{}.attn_output"),
    ("backbone.layers.{}.mixer.up_proj", "blk.{}.ffn_up"),
    ("backbone.layers.{}.mixer.down_proj", "blk.{}.ffn_down"),
    ("backbone.layers.{}.mixer.gate", "blk.{}.ffn_gate_inp"),
    ("backbone.layers.{}.mixer.shared_experts.up_proj", "blk.{}.ffn_up_shexp"),
    ("backbone.layers.{}.mixer.shared_experts.down_proj", "blk.{}.ffn_down_shexp"),
    ("backbone.layers.{}.mixer.fc1_latent_proj", "blk.{}.ffn_latent_down"),
    ("backbone.layers.{}.mixer.fc2_latent_proj", "blk.{}.ffn_latent_up"),
    ("backbone.layers.{}.mixer.in_proj", "blk.{}.ssm_in"),
    ("backbone.layers.{}.mixer.conv1d", "blk.{}.ssm_conv1d"),
    ("backbone.layers.{}.mixer.norm", "blk.{}.ssm_norm"),
    ("backbone.layers.{}.mixer.out_proj", "blk.{}.ssm_out"),
];

/// Parameters of the SSM and of the router whose names have no `.weight`.
const PARAMETERS: [&str; 4] = [
    "backbone.layers.{}.mixer.A_log",
    "backbone.layers.{}.mixer.D",
    "backbone.layers.{}.mixer.dt_bias",
    ROUTER_BIAS,
];

const ROUTER_BIAS: &str = "backbone.layers.{}.mixer.gate.e_score_correction_bias";

const EXPERTS: [(&str, &str); 2] = [
    ("backbone.layers.{}.mixer.experts.{}.down_proj.weight", "ffn_down_exps"),
    ("backbone.layers.{}.mixer.experts.{}.up_proj.weight", "ffn_up_exps"),
];

pub(crate) const SHARED_WIDTH: &str = "moe_shared_expert_intermediate_size";

pub(crate) const EXPERTS_PER_TOKEN: &str = "num_experts_per_tok";

/// Width of the input of latent experts.
pub(crate) const LATENT_SIZE: &str = "moe_latent_size";

pub(crate) const PATTERN: &str = "hybrid_override_pattern";

/// Context length of all models, as SSMs have no limit but runtimes expect the key.
const CONTEXT: u32 = 1 << 20;

pub(crate) struct NemotronH;

/// Description of [`NemotronH`].
pub(crate) static NEMOTRON_H: Description = Description {
    classes: &["NemotronHForCausalLM"],
    architecture: "nemotron_h",
    model_type: "nemotron_h",
    tensor_names: &[NAMES],
    config_fields: &[
        (key::SSM_CONV_KERNEL, "conv_kernel"),
        (key::SSM_STATE_SIZE, "ssm_state_size"),
        (key::SSM_GROUP_COUNT, "n_groups"),
        (key::SSM_TIME_STEP_RANK, "mamba_num_heads"),
        (key::EXPERT_COUNT, "n_routed_experts"),
        (key::EXPERT_SHARED_COUNT, "n_shared_experts"),
        (key::EXPERT_SHARED_FEED_FORWARD_LENGTH, SHARED_WIDTH),
        (key::EXPERT_WEIGHTS_NORM, "norm_topk_prob"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::EXPERT_GROUP_COUNT, "n_group"),
        (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
        (key::MOE_LATENT_SIZE, LATENT_SIZE),
    ],
    required_flags: &[("use_bias", false), ("mlp_bias", false), ("use_conv_bias", true)],
    ..Description::DECODER
};

impl Converter for NemotronH {
    fn description(&self) -> &'static Description {
        &NEMOTRON_H
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("conv_kernel", 4);
        config.default("ssm_state_size", 128);
        config.default("n_groups", 8);
        config.default("mamba_num_heads", 128);
        config.default("mamba_head_dim", 64);
        config.default("rms_norm_eps", 1e-5);
        if let Some(head_dim) = config.u32(&["attention_head_dim"])? {
            config.default("head_dim", head_dim);
        }
        let layers = layer_kinds(config)?.len();
        config.default("num_hidden_layers", layers);
        Ok(())
    }

    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        config.find(&[EXPERTS_PER_TOKEN]).and_then(|_| registry::converter("nemotron_h_moe"))
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        hybrid_keys(config, keys, hparams::feed_forward(config)?)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(one) = moe::one_of(&EXPERTS, name, || hparams::expert_count(config))? {
            return Ok(Some(one));
        }
        if let Some(bias) = moe::router_bias(ROUTER_BIAS, name) {
            return Ok(Some(bias));
        }
        // The table of SSM names has the prefixes of other checkpoints.
        let name = name.replace("backbone.layers.", "model.layers.").replace(".mixer.", ".mamba.");
        Ok(ssm_sizes(config)?.mapping(&name))
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        // Puzzle models, whose layers differ in this key, are of another class.
        let used_counts = model.metadata().array("nemotron_h_moe.expert_used_count");
        used_counts.is_none().then(|| export_hybrid(model, exported))?
    }
}

/// Kind of a layer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mamba,
    Attention,
    Ffn,
}

/// Returns the kinds of all layers, which config.json lists by names or by letters.
fn layer_kinds(config: &Config) -> Result<Vec<Kind>, Error> {
    let unknown = |field: &str, kind: &str| {
        let what = format!("`{field}` has the unknown layer kind `{kind}`");
        let help = "take the file from the model's repository";
        Error::input("config-field", config.path(), what, help)
    };
    let by_name = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "mamba" | "linear_attention" => Ok(Kind::Mamba),
        "attention" | "full_attention" => Ok(Kind::Attention),
        "moe" | "mlp" => Ok(Kind::Ffn),
        other => Err(unknown("layers_block_type", other)),
    };
    let by_letter = |letter: char| match letter {
        'M' => Ok(Kind::Mamba),
        '*' => Ok(Kind::Attention),
        '-' | 'E' => Ok(Kind::Ffn),
        other => Err(unknown(PATTERN, &other.to_string())),
    };
    if let Some(letters) = config.find(&[PATTERN]).and_then(|(_, letters)| letters.as_str()) {
        return letters.chars().map(by_letter).collect();
    }
    let names = config.find(&["layers_block_type"]).and_then(|(_, kinds)| kinds.as_array());
    let Some(names) = names else {
        let what = format!("has no field `{PATTERN}` (the kind of each layer)");
        let help = "add the field or take the file from the model's repository";
        return Err(Error::input("config-field-missing", config.path(), what, help));
    };
    names.iter().map(by_name).collect()
}

/// Returns the sizes of the SSM.
fn ssm_sizes(config: &Config) -> Result<Sizes, Error> {
    let number = |field: &str| config.require_u32(&[field], "a size of the SSM");
    let heads = number("mamba_num_heads")?;
    Ok(Sizes {
        inner: heads.saturating_mul(number("mamba_head_dim")?),
        kernel: number("conv_kernel")?,
        state: number("ssm_state_size")?,
        heads: Some((heads, number("n_groups")?)),
    })
}

/// Writes the keys of all hybrid models, with `ffn_width` for layers that have an FFN.
pub(crate) fn hybrid_keys(config: &Config, keys: &mut Keys, ffn_width: u32) -> Result<(), Error> {
    let head_dim = hparams::head_dim(config)?;
    let mut without_head_dim = config.clone();
    without_head_dim.set("head_dim", Value::Null);
    keys.stated(&without_head_dim)?;
    keys.vocab_size(config)?;
    keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(&without_head_dim)?);
    let sizes = ssm_sizes(config)?;
    let (heads, groups) = sizes.heads.unwrap_or_default();
    keys.set(key::SSM_CONV_KERNEL, sizes.kernel);
    keys.set(key::SSM_STATE_SIZE, sizes.state);
    keys.set(key::SSM_GROUP_COUNT, groups);
    keys.set(key::SSM_INNER_SIZE, sizes.inner);
    keys.set(key::SSM_TIME_STEP_RANK, heads);
    let kinds = layer_kinds(config)?;
    let of_kind = |expected: Kind, number: u32| {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        let number_of_layer = |kind: &Kind| if *kind == expected { number } else { 0 };
        kinds.iter().map(number_of_layer).collect::<Vec<i32>>()
    };
    let heads = of_kind(Kind::Attention, hparams::head_count_kv(config)?);
    keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&heads[..]));
    keys.set(key::ROPE_SCALING_FINETUNED, false);
    keys.set(key::CONTEXT_LENGTH, CONTEXT);
    keys.set(key::ATTENTION_KEY_LENGTH, head_dim);
    keys.set(key::ATTENTION_VALUE_LENGTH, head_dim);
    keys.set(key::FEED_FORWARD_LENGTH, Array::from(&of_kind(Kind::Ffn, ffn_width)[..]));
    Ok(())
}

/// Completes the description of an export with what all hybrid models have.
pub(crate) fn export_hybrid(model: &Model, exported: Exported) -> Option<Exported> {
    let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
    let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
    let is_routed = count(model, key::EXPERT_COUNT).is_some_and(|experts| experts > 0);
    let at = |key: &str, layer: u64| hyper.u64_in_layer(key, layer).unwrap_or(0);
    let letter = |layer: u64| match () {
        () if at("attention.head_count_kv", layer) > 0 => '*',
        () if at("feed_forward_length", layer) == 0 => 'M',
        () if is_routed => 'E',
        () => '-',
    };
    let maximum = |key: &str| (0..blocks).map(|layer| at(key, layer)).max();
    let heads = count(model, key::SSM_TIME_STEP_RANK).filter(|&heads| heads > 0)?;
    let exported = exported
        .patterns(PARAMETERS)
        .patterns(EXPERTS.map(|(name, _)| name))
        .without(&[key::ATTENTION_HEAD_COUNT_KV, key::FEED_FORWARD_LENGTH, key::CONTEXT_LENGTH])
        .set("num_key_value_heads", maximum("attention.head_count_kv"))
        .set("intermediate_size", maximum("feed_forward_length"))
        .set("max_position_embeddings", CONTEXT)
        .set("mamba_head_dim", count(model, key::SSM_INNER_SIZE)? / heads)
        .set("use_conv_bias", has(model, "blk.0.ssm_conv1d.bias"))
        .set(PATTERN, (0..blocks).map(letter).collect::<String>());
    Some(exported)
}
