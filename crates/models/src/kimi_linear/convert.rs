//! Conversion of Kimi Linear: the number of KV heads of a layer is 0 where it is a KDA layer;
//! `A_log` becomes `-exp(A_log)`, convolutions get four dimensions, and the KV projection of MLA is
//! split as in DeepSeek.

use gguf::{Array, Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::assembly::vector_shape;
use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, defaults, hparams, moe};
use crate::deepseek2::convert::{KV_B_PROJ, MLA_NAMES, split_kv_b};
use crate::schema::{HyperParameters, key};

/// Tensor names of KDA and MoE layers.
pub(crate) const NAMES: Table = &[
    ("model.layers.{}.self_attn.q_conv1d", "blk.{}.ssm_conv1d_q"),
    ("model.layers.{}.self_attn.k_conv1d", "blk.{}.ssm_conv1d_k"),
    ("model.layers.{}.self_attn.v_conv1d", "blk.{}.ssm_conv1d_v"),
    ("model.layers.{}.self_attn.f_a_proj", "blk.{}.ssm_f_a"),
    ("model.layers.{}.self_attn.f_b_proj", "blk.{}.ssm_f_b"),
    ("model.layers.{}.self_attn.b_proj", "blk.{}.ssm_beta"),
    ("model.layers.{}.self_attn.g_a_proj", "blk.{}.ssm_g_a"),
    ("model.layers.{}.self_attn.g_b_proj", "blk.{}.ssm_g_b"),
    ("model.layers.{}.self_attn.o_norm", "blk.{}.ssm_norm"),
    ("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.block_sparse_moe.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.block_sparse_moe.shared_experts.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.block_sparse_moe.shared_experts.down_proj", "blk.{}.ffn_down_shexp"),
];

/// Logarithm of the decay rate.
pub(crate) const A_LOG: &str = "model.layers.{}.self_attn.A_log";

/// Bias of the time step.
pub(crate) const DT_BIAS: &str = "model.layers.{}.self_attn.dt_bias";

/// Selection bias of the router.
const ROUTER_BIAS: &str = "model.layers.{}.block_sparse_moe.gate.e_score_correction_bias";

/// Matrices of an expert, and their stacked GGUF tensors.
const EXPERTS: [(&str, &str); 3] = [
    ("model.layers.{}.block_sparse_moe.experts.{}.w1.weight", "ffn_gate_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.w2.weight", "ffn_down_exps"),
    ("model.layers.{}.block_sparse_moe.experts.{}.w3.weight", "ffn_up_exps"),
];

/// Field with the configuration of linear attention.
pub(crate) const LINEAR_CONFIG: &str = "linear_attn_config";

/// Field of it that lists the MLA layers, counted from 1.
const FULL_LAYERS: &str = "full_attn_layers";

/// Value of `expert_gating_func` for a sigmoid router.
const SIGMOID: u64 = 2;

pub(crate) struct KimiLinear;

/// Description of [`KimiLinear`].
pub(crate) static KIMI_LINEAR: Description = Description {
    classes: &["KimiLinearForCausalLM", "KimiLinearModel"],
    architecture: "kimi-linear",
    model_type: "kimi_linear",
    pre_tokenizers: &["kimi-k2"],
    tensor_names: &[NAMES, MLA_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_USED_COUNT, "num_experts_per_token"),
        (key::EXPERT_SHARED_COUNT, "num_shared_experts"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
        (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
        (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
        (key::ATTENTION_KV_LORA_RANK, "kv_lora_rank"),
        (key::ATTENTION_VALUE_LENGTH_MLA, "v_head_dim"),
        (key::ROPE_DIMENSION_COUNT, "qk_rope_head_dim"),
    ],
    ..Description::DECODER
};

impl Converter for KimiLinear {
    fn description(&self) -> &'static Description {
        &KIMI_LINEAR
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let number =
            |field: &str| config.require_u32(&[field], "a size of attention or of the experts");
        let mut mla = config.clone();
        mla.set("num_key_value_heads", 1);
        keys.stated(&mla)?;
        keys.vocab_size(config)?;
        keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&head_counts_kv(config)?[..]));
        let linear = linear_config(config);
        keys.set_u32(key::SSM_CONV_KERNEL, linear.u32(&["short_conv_kernel_size"])?);
        keys.set_u32(key::KDA_HEAD_DIM, linear.u32(&["head_dim"])?);
        keys.set_u32(key::ATTENTION_Q_LORA_RANK, config.u32(&["q_lora_rank"])?);
        let (rank, rotary_dims) = (number("kv_lora_rank")?, number("qk_rope_head_dim")?);
        keys.set(key::ATTENTION_KV_LORA_RANK, rank);
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        keys.set(key::ATTENTION_KEY_LENGTH, rank.saturating_add(rotary_dims));
        keys.set(
            key::ATTENTION_KEY_LENGTH_MLA,
            number("qk_nope_head_dim")?.saturating_add(rotary_dims),
        );
        keys.set(key::ATTENTION_VALUE_LENGTH_MLA, number("v_head_dim")?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, number("moe_intermediate_size")?);
        keys.set(key::EXPERT_SHARED_COUNT, number("num_shared_experts")?);
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["first_k_dense_replace"])?);
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_special(config, name)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        conv1d_steps(config, name, linear_config(config).u32(&["head_dim"])?.unwrap_or(0))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export(model, exported)
    }
}

/// Returns the configuration of linear attention.
pub(crate) fn linear_config(config: &Config) -> Config {
    config.part(LINEAR_CONFIG)
}

/// Returns the number of KV heads of each layer: 1 for MLA, 0 for linear attention.
pub(crate) fn head_counts_kv(config: &Config) -> Result<Vec<i32>, Error> {
    let linear = linear_config(config);
    let full = linear.find(&[FULL_LAYERS]).and_then(|(_, layers)| layers.as_array());
    let Some(full) = full else {
        let what = format!(
            "has no field `{FULL_LAYERS}` in `{LINEAR_CONFIG}` (the list of full-attention layers)"
        );
        let help = "take the file from the model's repository";
        return Err(Error::input("config-field-missing", config.path(), what, help));
    };
    let is_full = |layer| i32::from(full.iter().any(|full| full.as_u64() == Some(layer)));
    Ok((1..=u64::from(hparams::block_count(config)?)).map(is_full).collect())
}

/// Maps an `A_log` of any shape to the vector `ssm_a`, one value per head.
pub(crate) fn map_a_log(config: &Config, block: u32) -> Result<Mapping, Error> {
    let flat = vector_shape(hparams::head_count(config)?.into());
    let steps = [Step::Map(Function::MinusExp), Step::Reshape { from: flat, to: flat }];
    Ok(Mapping::one(format!("blk.{block}.ssm_a"), steps))
}

/// Maps experts, the KV projection of MLA, `A_log`, `dt_bias` and the router bias.
pub(crate) fn map_special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(one) = moe::one_of(&EXPERTS, name, || hparams::expert_count(config))? {
        return Ok(Some(one));
    }
    let block_of = |pattern| match captures(pattern, name).as_deref() {
        Some(&[block]) => Some(block),
        _ => None,
    };
    if let Some(block) = block_of(KV_B_PROJ) {
        return split_kv_b(config, block).map(Some);
    }
    let mapping = block_of(A_LOG)
        .map(|block| Mapping::one(format!("blk.{block}.ssm_a"), [Step::Map(Function::MinusExp)]))
        .or(block_of(DT_BIAS).map(|block| Mapping::one(format!("blk.{block}.ssm_dt.bias"), [])))
        .or(moe::router_bias(ROUTER_BIAS, name));
    Ok(mapping)
}

/// Returns the steps for depthwise convolutions of `head_dim` channels per head, which get four
/// dimensions.
pub(crate) fn conv1d_steps(config: &Config, name: &str, head_dim: u32) -> Result<Vec<Step>, Error> {
    if !name.contains(".ssm_conv1d_") {
        return Ok(Vec::new());
    }
    const KERNEL: &[&str] = &["short_conv_kernel_size"];
    let kernel = match linear_config(config).u32(KERNEL)? {
        Some(kernel) => u64::from(kernel),
        None => config.require_u32(KERNEL, "the kernel size of the convolutions")?.into(),
    };
    let channels = u64::from(head_dim) * u64::from(hparams::head_count(config)?);
    let shape =
        |dims: &[u64]| Shape::new(dims).unwrap_or_else(|| unreachable!("at most four dimensions"));
    let (from, to) = (shape(&[kernel, 1, channels]), shape(&[kernel, 1, channels, 1]));
    Ok(vec![Step::Reshape { from, to }])
}

/// Completes an export: the kinds of layers follow from the numbers of KV heads.
pub(crate) fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let hyper = HyperParameters::from_metadata(model.metadata()).ok()?;
    let number = |key| count(model, key);
    let blocks = number("block_count")?.min(1 << 16);
    let is_full =
        |layer: &u64| hyper.u64_in_layer(key::ATTENTION_HEAD_COUNT_KV, *layer).unwrap_or(0) > 0;
    let (full, linear): (Vec<u64>, Vec<u64>) = (0..blocks).partition(is_full);
    let one_based =
        |layers: Vec<u64>| layers.into_iter().map(|layer| layer + 1).collect::<Vec<_>>();
    let heads = number("attention.head_count")?;
    let rotary_dims = number("rope.dimension_count")?;
    let linear = json!({FULL_LAYERS: one_based(full), "kda_layers": one_based(linear), "num_heads": heads,
        "head_dim": number("kda.head_dim"), "short_conv_kernel_size": number("ssm.conv_kernel")});
    let router = match number("expert_gating_func") {
        Some(SIGMOID) => Some("sigmoid"),
        Some(1) => Some("softmax"),
        _ => None,
    };
    let exported = exported
        .patterns([A_LOG, DT_BIAS, ROUTER_BIAS, KV_B_PROJ])
        .patterns(EXPERTS.map(|(name, _)| name))
        .without(&[key::ATTENTION_HEAD_COUNT_KV, key::ATTENTION_KEY_LENGTH])
        .set("num_key_value_heads", heads)
        .set("qk_nope_head_dim", number("attention.key_length_mla")?.checked_sub(rotary_dims)?)
        .set("q_lora_rank", number("attention.q_lora_rank").map_or(Value::Null, Value::from))
        .set_some("moe_router_activation_func", router)
        .set(LINEAR_CONFIG, linear);
    Some(exported)
}
