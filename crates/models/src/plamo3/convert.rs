//! PLaMo: the first, with fewer heads of keys; the second, with state spaces in most layers; the third,
//! with windows.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::count;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, export};
use crate::plamo::convert::ENDS;
use crate::plamo2::convert::{NAMES_SINCE, POST_NORMS, norms, post_norm};
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
    tensor_names: &[ENDS, NAMES_SINCE, HEAD_NORMS],
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
        // Positions are stretched by fields of its own.
        let factor = config.f32(&["rope_scaling_factor"])?.unwrap_or(1.0);
        if factor != 1.0 && config.find(&["rope_scaling", "rope_parameters"]).is_none() {
            let original =
                config.require_u32(&["initial_context_length"], "the context before stretching")?;
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
            let period = config.require_u32(PERIOD, "every how many layers there is no window")?;
            keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, period);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        post_norm(config, name)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        norms(config, name)
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
