//! Conversion of `FalconH1ForCausalLM`. The muP multipliers of config.json are multiplied into the
//! weights, per section for the Mamba input projection; exports keep them there.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::has;
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::ssm::Sizes;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, defaults, export, hparams, ssm};
use crate::schema::key;

const NAMES: Table = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.{}.feed_forward.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.feed_forward.down_proj", "blk.{}.ffn_down"),
];

/// Whether the mixer has a norm of its output, and whether it precedes the gate.
const NORM: &str = "mamba_rms_norm";

const NORM_FIRST: &str = "mamba_norm_before_gate";

/// FFN norm, whose GGUF name has no suffix.
const FFN_NORM: &str = "model.layers.{}.pre_ff_layernorm.weight";

pub(crate) struct FalconH1;

/// Description of [`FalconH1`].
pub(crate) static FALCON_H1: Description = Description {
    classes: &["FalconH1ForCausalLM"],
    architecture: "falcon-h1",
    model_type: "falcon_h1",
    pre_tokenizers: &["falcon-h1"],
    tensor_names: &[NAMES, ssm::NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::SSM_CONV_KERNEL, "mamba_d_conv"),
        (key::SSM_INNER_SIZE, "mamba_d_ssm"),
        (key::SSM_STATE_SIZE, "mamba_d_state"),
        (key::SSM_GROUP_COUNT, "mamba_n_groups"),
        (key::SSM_TIME_STEP_RANK, "mamba_n_heads"),
    ],
    required_flags: &[
        ("attention_bias", false),
        ("mlp_bias", false),
        ("projectors_bias", false),
        ("mamba_proj_bias", false),
    ],
    ..Description::DECODER
};

impl Converter for FalconH1 {
    fn description(&self) -> &'static Description {
        &FALCON_H1
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        for (field, value) in [
            ("mamba_d_conv", 4),
            ("mamba_d_state", 256),
            ("mamba_n_groups", 1),
            ("mamba_d_ssm", 1024),
        ] {
            config.default(field, value);
        }
        config.default("rms_norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        // Runtimes apply the norm after the gate.
        let is = |field: &str| Ok::<_, Error>(config.bool(field)?.unwrap_or(false));
        if is(NORM)? && is(NORM_FIRST)? {
            return Err(hparams::not_computed(config, NORM_FIRST, true));
        }
        let sizes = sizes(config)?;
        let (heads, groups) = sizes.heads.unwrap_or_default();
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::SSM_CONV_KERNEL, sizes.kernel);
        keys.set(key::SSM_INNER_SIZE, sizes.inner);
        keys.set(key::SSM_STATE_SIZE, sizes.state);
        keys.set(key::SSM_TIME_STEP_RANK, heads);
        keys.set(key::SSM_GROUP_COUNT, groups);
        keys.set_f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON, config.f32(&["rms_norm_eps"])?);
        keys.file_type();
        keys.vocab_size(config)?;
        keys.set(key::ATTENTION_HEAD_COUNT_KV, hparams::head_count_kv(config)?);
        let head_dim = hparams::head_dim(config)?;
        keys.set(key::ATTENTION_KEY_LENGTH, head_dim);
        keys.set(key::ATTENTION_VALUE_LENGTH, head_dim);
        let rope = Rope::of(config)?;
        keys.rope(config, &rope)?;
        keys.set_f32(key::ROPE_FREQ_BASE, rope.base);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(&[block]) = captures(FFN_NORM, name).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.ffn_norm"), [])));
        }
        let Some(Mapping::Tensors(mut tensors)) = sizes(config)?.mapping(name) else {
            return Ok(None);
        };
        for tensor in &mut tensors {
            tensor.steps.extend(multipliers(config, &tensor.name)?);
        }
        Ok(Some(Mapping::Tensors(tensors)))
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        multipliers(config, name)
    }

    // The multipliers stay in the weights.
    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let width = export::ratio(model, key::SSM_INNER_SIZE, "ssm.time_step_rank");
        Some(
            exported
                .first(ssm::parameters())
                .patterns([FFN_NORM])
                .set_some("mamba_d_head", width)
                .set(NORM, has(model, "blk.0.ssm_norm.weight"))
                .set(NORM_FIRST, false)
                .set("mamba_conv_bias", export::may_have(model, "blk.0.ssm_conv1d.bias")),
        )
    }
}

fn sizes(config: &Config) -> Result<Sizes, Error> {
    let number = |field: &str| config.require_u32(&[field], "a size of the SSM");
    let inner = number("mamba_d_ssm")?;
    let is_stated = config.find(&["mamba_d_head"]).is_some_and(|(_, width)| width.is_u64());
    let heads = match is_stated {
        true => inner / number("mamba_d_head")?.max(1),
        false => number("mamba_n_heads")?,
    };
    Ok(Sizes {
        inner,
        kernel: number("mamba_d_conv")?,
        state: number("mamba_d_state")?,
        heads: Some((heads, number("mamba_n_groups")?)),
    })
}

/// Returns the steps that multiply a tensor by its multipliers.
fn multipliers(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let number = |field: &str| config.f32(&[field]).map(|factor| factor.unwrap_or(1.0));
    let listed = |field: &str, at: usize| {
        let list = config.find(&[field]).and_then(|(_, list)| list.as_array());
        list.and_then(|list| list.get(at)).and_then(Value::as_f64).map_or(1.0, |x| x as f32)
    };
    let part = name.rsplit('.').nth(1).unwrap_or_default();
    let factors = match part {
        "ffn_gate" => vec![listed("mlp_multipliers", 0)],
        "ffn_down" => vec![listed("mlp_multipliers", 1)],
        "attn_k" => vec![number("key_multiplier")?, number("attention_in_multiplier")?],
        "attn_q" | "attn_v" => vec![number("attention_in_multiplier")?],
        "attn_output" => vec![number("attention_out_multiplier")?],
        "ssm_in" => vec![number("ssm_in_multiplier")?],
        "ssm_out" => vec![number("ssm_out_multiplier")?],
        "output" => vec![number("lm_head_multiplier")?],
        "token_embd" => vec![number("embedding_multiplier")?],
        _ => Vec::new(),
    };
    let mut steps: Vec<Step> =
        factors.into_iter().filter(|&c| c != 1.0).map(|c| Step::Map(Function::Times(c))).collect();
    if part == "ssm_in" {
        // Sections: gate z, input x, B, C, time steps dt.
        let sizes = sizes(config)?;
        let (heads, groups) = sizes.heads.unwrap_or_default();
        let states = u64::from(groups) * u64::from(sizes.state);
        let inner = u64::from(sizes.inner);
        let mut start = 0;
        for (at, len) in [inner, inner, states, states, heads.into()].into_iter().enumerate() {
            let factor = listed("ssm_multipliers", at);
            if factor != 1.0 {
                steps.push(Step::MapRows {
                    groups: 1,
                    start,
                    len,
                    function: Function::Times(factor),
                });
            }
            start += len;
        }
    }
    Ok(steps)
}
