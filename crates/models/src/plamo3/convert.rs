//! Conversion of PLaMo 3. config.json states YaRN scaling by fields of its own.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, export};
use crate::plamo::convert::EMBEDDING_AND_OUTPUT;
use crate::plamo2::convert::{LAYER_NAMES, POST_NORMS, map_post_norm, norm_steps};
use crate::schema::key;

const HEAD_NORMS: Table = &[
    ("model.layers.layers.{}.mixer.q_norm", "blk.{}.attn_q_norm"),
    ("model.layers.layers.{}.mixer.k_norm", "blk.{}.attn_k_norm"),
];

pub(crate) struct Plamo3;

/// Description of [`Plamo3`].
pub(crate) static PLAMO3: Description = Description {
    classes: &["Plamo3ForCausalLM", "PLaMo3ForCausalLM"],
    architecture: "plamo3",
    model_type: "plamo3",
    vocabulary: VocabularyKind::Plamo { template: true },
    tensor_names: &[EMBEDDING_AND_OUTPUT, LAYER_NAMES, HEAD_NORMS],
    config_fields: &[
        (key::ATTENTION_SLIDING_WINDOW, "window_size"),
        (key::ATTENTION_SLIDING_WINDOW_PATTERN, "sliding_window_pattern"),
        (key::ROPE_FREQ_BASE_SWA, "rope_local_theta"),
    ],
    ..Description::DECODER
};

impl Converter for Plamo3 {
    fn description(&self) -> &'static Description {
        &PLAMO3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        // Fields of this class for YaRN scaling.
        let factor = config.f32(&["rope_scaling_factor"])?.unwrap_or(1.0);
        if factor != 1.0 && config.find(&["rope_scaling", "rope_parameters"]).is_none() {
            let original = config.require_u32(
                &["initial_context_length"],
                "the context length before RoPE scaling",
            )?;
            let scaling = json!({"rope_type": "yarn", "factor": factor, "beta_fast": 32.0,
                "beta_slow": 1.0, "original_max_position_embeddings": original});
            config.set("rope_scaling", scaling);
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        if let Some(window) = config.u32(&["window_size", "sliding_window"])? {
            const PERIOD: &[&str] = &["sliding_window_pattern"];
            keys.set(key::ATTENTION_SLIDING_WINDOW, window);
            let period = config.require_u32(PERIOD, "the period of full-attention layers")?;
            keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, period);
        }
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(map_post_norm(name))
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        Ok(norm_steps(name))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported.patterns(POST_NORMS.map(|(name, _)| name));
        let Some(factor) = export::number(model, key::ROPE_SCALING_FACTOR) else {
            return Some(exported);
        };
        let original = count(model, key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH);
        let original: Option<Value> = original.map(Value::from);
        Some(
            exported
                .set("rope_scaling_factor", factor)
                .set_some("initial_context_length", original),
        )
    }
}
