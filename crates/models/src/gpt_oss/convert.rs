//! gpt-oss, with weights in a plain float type.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::json;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, Exported, MappedTensor, Mapping, hparams, sliding_window,
};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.mlp.router", "blk.{}.ffn_gate_inp"),
];

/// Names without a last segment that says `weight` or `bias`: foreign, ours.
const WHOLE: [(&str, &str); 2] = [
    ("model.layers.{}.self_attn.sinks", "attn_sinks.weight"),
    ("model.layers.{}.mlp.experts.down_proj_bias", "ffn_down_exps.bias"),
];

/// All experts of a layer in one, inputs first.
const DOWN: &str = "model.layers.{}.mlp.experts.down_proj";

const GATE_AND_UP: &str = "model.layers.{}.mlp.experts.gate_up_proj";

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
            "beta_slow": 1.0, "original_max_position_embeddings": 4096});
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

    // The matrices of experts are stored with rows and columns exchanged, and gates and what they
    // gate alternate.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (foreign, ours) in WHOLE {
            if let Some(&[block]) = captures(foreign, name).as_deref() {
                return Ok(Some(Mapping::one(format!("blk.{block}.{ours}"), [])));
            }
        }
        // In MXFP4 the inputs come last, as they do here.
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
            let (count, width) = (hparams::expert_count(config)?, hparams::feed_forward(config)?);
            let (count, width) = (u64::from(count), u64::from(width));
            let both = shape(&[2 * width, count]);
            let column = shape(&[1, 2 * width, count]);
            let half = shape(&[1, width, count]);
            let row = shape(&[width, count]);
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
            .patterns(WHOLE.map(|(name, _)| name))
            .patterns([DOWN, GATE_AND_UP, GATE_AND_UP_BIAS])
            .without(&[key::EXPERT_FEED_FORWARD_LENGTH])
            // Programs know this of the architecture; `transformers` takes the other.
            .scaling("truncate", false);
        Some(sliding_window::export_of_pattern(model, exported))
    }
}

/// The step that takes every other row of all experts, from the first or from the second on.
fn alternating(config: &Config) -> Result<impl Fn(u64) -> Step, Error> {
    let (count, width) = (hparams::expert_count(config)?, hparams::feed_forward(config)?);
    let groups = u64::from(count) * u64::from(width);
    Ok(move |start| Step::Pick { groups, start, len: 1 })
}

fn gate_and_up(block: u32, suffix: &str, steps: impl Fn(u64) -> Vec<Step>) -> Mapping {
    let made = |part: &str, index| MappedTensor {
        name: format!("blk.{block}.ffn_{part}_exps.{suffix}"),
        steps: steps(index),
        slot: None,
    };
    Mapping::Made(vec![made("gate", 0), made("up", 1)])
}

fn shape(dims: &[u64]) -> Shape {
    Shape::new(dims)
        .unwrap_or_else(|| unreachable!("{} dimensions are no more than four", dims.len()))
}
