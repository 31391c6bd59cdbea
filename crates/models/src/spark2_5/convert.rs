//! Conversion of Spark X2.5. config.json states RoPE for full-attention and sliding-window layers.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, defaults, export, hparams, sliding_window};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.q_k_v_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.self_attn.g_proj", "blk.{}.attn_gate"),
];

const PARAMETERS: &str = "rope_parameters";

/// Attention types: the name in config.json, and the suffix of metadata keys.
const ATTENTION_TYPES: [(&str, &str); 2] = [("full_attention", ""), ("sliding_attention", "_swa")];

pub(crate) struct Spark25;

/// Description of [`Spark25`].
pub(crate) static SPARK25: Description = Description {
    classes: &["Spark2_5ForCausalLM"],
    architecture: "spark2_5",
    model_type: "spark2_5",
    pre_tokenizers: &["spark2_5"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    required_flags: &[("headwise_attn_output_gate", true)],
    ..Description::DECODER
};

impl Converter for Spark25 {
    fn description(&self) -> &'static Description {
        &SPARK25
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
        let layers = sliding_window::layers(config, 0)?;
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&layers[..]));
        let head_dim = f64::from(hparams::head_dim(config)?);
        for (kind, suffix) in ATTENTION_TYPES {
            let factor = config.part(PARAMETERS).part(kind).f64(&["partial_rotary_factor"])?;
            let rotary_dims = (factor.unwrap_or(1.0) * head_dim) as u32;
            keys.set(&format!("rope.dimension_count{suffix}"), rotary_dims);
        }
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let number = |key: &str| export::number(model, key);
        let head_dim = number("attention.key_length").filter(|&dim| dim > 0.0)?;
        let rope_of_type = |(kind, suffix): (&str, &str)| {
            let rotary_dims = number(&format!("rope.dimension_count{suffix}"))?;
            let base = number(&format!("rope.freq_base{suffix}"))?;
            let parameters = json!({"rope_type": "default", "rope_theta": base,
            "partial_rotary_factor": rotary_dims / head_dim});
            Some((kind.to_owned(), parameters))
        };
        let parameters = ATTENTION_TYPES
            .into_iter()
            .map(rope_of_type)
            .collect::<Option<serde_json::Map<_, _>>>()?;
        let exported = exported
            .set(PARAMETERS, Value::from(parameters))
            .set("headwise_attn_output_gate", true)
            .set("gate_attn_act_mode", "sigmoid")
            .set("hidden_act", "gelu");
        Some(sliding_window::export_of_pattern(model, exported))
    }
}
