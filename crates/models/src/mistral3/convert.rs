//! Conversion of Ministral 3 and Mistral Small: a Llama, in Ministral 3 with YaRN and an attention
//! temperature. `Mistral3ForConditionalGeneration` may have a text model of either, or of Mistral
//! 4.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::number;
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, VocabularyKind, defaults, hparams, rope,
    sliding_window, steps,
};
use crate::mistral4::convert::{MISTRAL4_TYPE, Mistral4, VISION_CLASS};
use crate::schema::key;

/// `model_type` of Ministral 3.
const MINISTRAL3_TYPE: &str = "ministral3";

pub(crate) struct Mistral3;

/// Description of [`Mistral3`].
pub(crate) static MISTRAL3: Description = Description {
    classes: &["Ministral3ForCausalLM", VISION_CLASS],
    architecture: "mistral3",
    model_type: MINISTRAL3_TYPE,
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["tekken"],
    ..Description::DECODER
};

impl Converter for Mistral3 {
    fn description(&self) -> &'static Description {
        &MISTRAL3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        if has_type(config, MISTRAL4_TYPE) {
            return Mistral4.complete_config(config);
        }
        config.default("rms_norm_eps", 1e-5);
        if has_type(config, MINISTRAL3_TYPE) {
            config.default("head_dim", 128);
        }
        defaults::attention(config)
    }

    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        has_type(config, MISTRAL4_TYPE).then_some(&Mistral4)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let head_dim = hparams::head_dim(config)?;
        keys.llama_like(config, Some(head_dim))?;
        if has_type(config, MINISTRAL3_TYPE) {
            let rope = Rope::of(config)?;
            keys.set(
                key::ROPE_SCALING_YARN_LOG_MULTIPLIER,
                require_parameter(config, &rope, "mscale_all_dim")?,
            );
            keys.set(
                key::ATTENTION_TEMPERATURE_SCALE,
                require_parameter(config, &rope, "llama_4_scaling_beta")?,
            );
        }
        sliding_window::unexpected(keys, config, config.u32(&["sliding_window"])?)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let Some(beta) = number(model, key::ATTENTION_TEMPERATURE_SCALE) else {
            return Some(exported.class(VISION_CLASS, "mistral3"));
        };
        let scale = number(model, key::ROPE_SCALING_YARN_LOG_MULTIPLIER).unwrap_or(1.0);
        let exported = exported.scaling("mscale", 1.0).scaling("mscale_all_dim", scale);
        Some(exported.scaling("llama_4_scaling_beta", beta))
    }
}

/// Returns whether the text model has this `model_type`.
fn has_type(config: &Config, kind: &str) -> bool {
    config.find(&["model_type"]).is_some_and(|(_, stated)| stated == kind)
}

/// Returns a required RoPE parameter.
fn require_parameter(config: &Config, rope: &Rope, field: &str) -> Result<f32, Error> {
    rope.f64(field)?.map(|value| value as f32).ok_or_else(|| {
        let what = format!("has no field `{field}` in its RoPE parameters (a number)");
        let help = "take the file from the model's repository";
        Error::input("config-field-missing", config.path(), what, help)
    })
}

#[cfg(test)]
mod tests {
    use gguf::Metadata;
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_the_missing_field() {
        let mut config = Config::of(json!({
            "model_type": MINISTRAL3_TYPE, "num_hidden_layers": 2, "hidden_size": 64, "head_dim": 16,
            "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 8,
            "max_position_embeddings": 64, "rope_parameters": {"rope_type": "yarn", "factor": 2.0,
                "mscale_all_dim": 1.0},
        }));
        Mistral3.complete_config(&mut config).unwrap();
        let error =
            (&Mistral3 as &dyn Converter).metadata(&config, 0, &mut Metadata::new()).unwrap_err();
        assert!(error.to_string().contains("llama_4_scaling_beta"), "{error}");
    }
}
