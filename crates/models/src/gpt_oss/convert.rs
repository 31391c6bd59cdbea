//! Conversion of gpt-oss: expert matrices are stacked, gate and up rows alternate, and floats are
//! transposed (MXFP4 blocks are not).

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::json;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, hparams, sliding_window,
};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.mlp.router", "blk.{}.ffn_gate_inp"),
];

/// Tensors whose Hugging Face names do not end in `.weight` or `.bias`, and their GGUF names.
const PARAMETERS: [(&str, &str); 2] = [
    ("model.layers.{}.self_attn.sinks", "attn_sinks.weight"),
    ("model.layers.{}.mlp.experts.down_proj_bias", "ffn_down_exps.bias"),
];

/// Down projections of all experts of a layer, as inputs x outputs.
const DOWN: &str = "model.layers.{}.mlp.experts.down_proj";

/// Gate and up projections of all experts of a layer, with alternating columns.
const GATE_AND_UP: &str = "model.layers.{}.mlp.experts.gate_up_proj";

/// Gate and up biases of all experts of a layer, alternating.
const GATE_AND_UP_BIAS: &str = "model.layers.{}.mlp.experts.gate_up_proj_bias";

pub(crate) struct GptOss;

/// Description of [`GptOss`].
pub(crate) static GPT_OSS: Description = Description {
    classes: &["GptOssForCausalLM"],
    architecture: "gpt-oss",
    model_type: "gpt_oss",
    pre_tokenizers: &["gpt-4o"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[(key::EXPERT_COUNT, "num_local_experts")],
    ..Description::DECODER
};

impl Converter for GptOss {
    fn description(&self) -> &'static Description {
        &GPT_OSS
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("head_dim", 64);
        config.default("num_key_value_heads", 8);
        config.default("sliding_window", 128);
        config.default("num_experts_per_tok", 4);
        config.default("rope_theta", 1.5e5);
        if config.find(&["rope_parameters"]).is_none() {
            let scaling = json!({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0,
            "beta_slow": 1.0, "truncate": false, "original_max_position_embeddings": 4096});
            config.default("rope_scaling", scaling);
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.decoder(config, hparams::stated_head_dim(config)?)?;
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        sliding_window::unusual_pattern(keys, config, 2)
    }

    // Expert matrices of floats are stored transposed, and gate and up projections alternate.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (hf_name, gguf_name) in PARAMETERS {
            if let Some(&[block]) = captures(hf_name, name).as_deref() {
                return Ok(Some(Mapping::one(format!("blk.{block}.{gguf_name}"), [])));
            }
        }
        // MXFP4 blocks run along the inputs, as in GGUF.
        let experts = "model.layers.{}.mlp.experts.down_proj.weight";
        if let Some(&[block]) = captures(experts, name).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.ffn_down_exps.weight"), [])));
        }
        let experts = "model.layers.{}.mlp.experts.gate_up_proj.weight";
        if let Some(&[block]) = captures(experts, name).as_deref() {
            let alternating = alternating(config)?;
            return Ok(Some(gate_and_up(block, "weight", |part| vec![alternating(part)])));
        }
        if let Some(&[block]) = captures(DOWN, name).as_deref() {
            return Ok(Some(Mapping::one(
                format!("blk.{block}.ffn_down_exps.weight"),
                [Step::Transpose],
            )));
        }
        if let Some(&[block]) = captures(GATE_AND_UP, name).as_deref() {
            let alternating = alternating(config)?;
            return Ok(Some(gate_and_up(block, "weight", |part| {
                vec![Step::Transpose, alternating(part)]
            })));
        }
        if let Some(&[block]) = captures(GATE_AND_UP_BIAS, name).as_deref() {
            let alternating = alternating(config)?;
            let (count, length) = (hparams::expert_count(config)?, hparams::feed_forward(config)?);
            let (count, length) = (u64::from(count), u64::from(length));
            let both = shape(&[2 * length, count]);
            let column = shape(&[1, 2 * length, count]);
            let half = shape(&[1, length, count]);
            let row = shape(&[length, count]);
            return Ok(Some(gate_and_up(block, "bias", |part| {
                vec![
                    Step::Reshape { from: both, to: column },
                    alternating(part),
                    Step::Reshape { from: half, to: row },
                ]
            })));
        }
        Ok(None)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported
            .patterns(PARAMETERS.map(|(name, _)| name))
            .patterns([DOWN, GATE_AND_UP, GATE_AND_UP_BIAS])
            .without(&[key::EXPERT_FEED_FORWARD_LENGTH])
            // The runtime does not round the YaRN bounds of this architecture; `transformers` does
            // by default.
            .scaling("truncate", false);
        Some(sliding_window::export_of_pattern(model, exported))
    }
}

/// Returns the step that takes every second row of all experts, beginning with row 0 or row 1.
fn alternating(config: &Config) -> Result<impl Fn(u64) -> Step, Error> {
    let (count, length) = (hparams::expert_count(config)?, hparams::feed_forward(config)?);
    let groups = u64::from(count) * u64::from(length);
    Ok(move |start| Step::Pick { groups, start, len: 1 })
}

/// Maps one tensor to the gate (part 0) and the up projection (part 1) of all experts.
fn gate_and_up(block: u32, suffix: &str, steps: impl Fn(u64) -> Vec<Step>) -> Mapping {
    let tensor = |part: &str, index| MappedTensor {
        name: format!("blk.{block}.ffn_{part}_exps.{suffix}"),
        steps: steps(index),
        slot: None,
    };
    Mapping::Tensors(vec![tensor("gate", 0), tensor("up", 1)])
}

fn shape(dims: &[u64]) -> Shape {
    Shape::new(dims)
        .unwrap_or_else(|| unreachable!("{} dimensions are no more than four", dims.len()))
}
