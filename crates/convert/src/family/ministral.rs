//! Ministral 3, and Mistral Small since 3.1: as llama, with attention that sharpens on long texts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::number;
use super::hyper::{self, Keys, Rope};
use super::mistral4::{MISTRAL4, MISTRAL4_TYPE};
use super::{Exported, Family, windows};
use crate::vocab;

const MINISTRAL: &str = "ministral3";

pub(super) static MISTRAL3: Family = Family {
    classes: &["Ministral3ForCausalLM", SEEING],
    architecture: "mistral3",
    model_type: MINISTRAL,
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["tekken"],
    complete: |config| {
        if is_of(config, MISTRAL4_TYPE) {
            return (MISTRAL4.complete)(config);
        }
        config.default("rms_norm_eps", 1e-5);
        if is_of(config, MINISTRAL) {
            config.default("head_dim", 128);
        }
        hyper::default_attention(config)
    },
    instead: |config| is_of(config, MISTRAL4_TYPE).then_some(&MISTRAL4),
    keys,
    steps: hyper::llama_order,
    computed: hyper::rope_freqs,
    export,
    ..Family::DEFAULT
};

/// Its text model may be of the first kind, or Mistral 4.
pub(super) const SEEING: &str = "Mistral3ForConditionalGeneration";

/// Whether the text model is of this `model_type`.
fn is_of(config: &Config, kind: &str) -> bool {
    config.find(&["model_type"]).is_some_and(|(_, stated)| stated == kind)
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let head_dim = hyper::head_dim(config)?;
    keys.llama_like(config, Some(head_dim))?;
    if is_of(config, MINISTRAL) {
        let rope = Rope::of(config)?;
        keys.set("rope.scaling.yarn_log_multiplier", required(config, &rope, "mscale_all_dim")?);
        keys.set("attention.temperature_scale", required(config, &rope, "llama_4_scaling_beta")?);
    }
    windows::unexpected(keys, config, config.u32(&["sliding_window"])?)
}

/// A field of the rotary embedding without which nobody knows what to compute.
fn required(config: &Config, rope: &Rope, field: &str) -> Result<f32, Error> {
    rope.f64(field)?.map(|value| value as f32).ok_or_else(|| {
        let what = format!("the rotary embedding has no field `{field}`");
        let help = "take the file from the model's repository";
        Error::input("config-field-missing", config.path(), what, help)
    })
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let Some(beta) = number(model, "attention.temperature_scale") else {
        return Some(exported.class(SEEING, "mistral3"));
    };
    let scale = number(model, "rope.scaling.yarn_log_multiplier").unwrap_or(1.0);
    Some(exported.scaling("mscale_all_dim", scale).scaling("llama_4_scaling_beta", beta))
}

#[cfg(test)]
mod tests {
    use gguf::Metadata;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_missing_is_named() {
        let mut config = Config::of(json!({
            "model_type": MINISTRAL, "num_hidden_layers": 2, "hidden_size": 64, "head_dim": 16,
            "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 8,
            "max_position_embeddings": 64, "rope_parameters": {"rope_type": "yarn", "factor": 2.0,
                "mscale_all_dim": 1.0},
        }));
        MISTRAL3.complete(&mut config).unwrap();
        let fault = MISTRAL3.metadata(&config, 0, &mut Metadata::new()).unwrap_err();
        assert!(fault.to_string().contains("llama_4_scaling_beta"), "{fault}");
    }
}
