//! Gemma 3n: several streams of the residual, embeddings for each layer, sparse activations.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, shortest};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, Mapping, VocabularyKind, hparams, sliding_window,
};
use crate::gemma2::convert::NORMS;
use crate::gemma4::convert::PER_LAYER;
use crate::schema::key;

const STREAMS: Table = &[
    ("model.layers.{}.altup.correction_coefs", "blk.{}.altup_correct_coef"),
    ("model.layers.{}.altup.prediction_coefs", "blk.{}.altup_predict_coef"),
    ("model.layers.{}.altup.modality_router", "blk.{}.altup_router"),
    ("model.layers.{}.altup.router_norm", "blk.{}.altup_router_norm"),
    ("model.layers.{}.laurel.linear_left", "blk.{}.laurel_l"),
    ("model.layers.{}.laurel.linear_right", "blk.{}.laurel_r"),
    ("model.layers.{}.laurel.post_laurel_norm", "blk.{}.laurel_post_norm"),
];

const SCALE: &str = "model.layers.{}.altup.correct_output_scale";

/// Matrices of all streams but the first: foreign name of one, our name of all.
const OF_STREAMS: [(&str, &str); 2] = [
    ("model.altup_projections.{}.weight", "altup_proj.weight"),
    ("model.altup_unembed_projections.{}.weight", "altup_unembd_proj.weight"),
];

/// As many streams have the matrices of programs.
const COUNT: u32 = 4;

const SPARSITY: &str = "activation_sparsity_pattern";

const WIDTHS: &str = "intermediate_size";

pub(crate) struct Gemma3n;

/// Description of [`Gemma3n`].
pub(crate) static GEMMA3N: Description = Description {
    classes: &["Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"],
    architecture: "gemma3n",
    model_type: "gemma3n_text",
    vocabulary: VocabularyKind::Gemma { first: false },
    tensor_names: &[NORMS, PER_LAYER, STREAMS, LLAMA_LIKE],
    config_fields: &[
        (key::ALTUP_ACTIVE_IDX, "altup_active_idx"),
        (key::ALTUP_NUM_INPUTS, "altup_num_inputs"),
        (key::ATTENTION_SHARED_KV_LAYERS, "num_kv_shared_layers"),
        (key::EMBEDDING_LENGTH_PER_LAYER_INPUT, "hidden_size_per_layer_input"),
        (key::FINAL_LOGIT_SOFTCAPPING, "final_logit_softcapping"),
        (key::ROPE_FREQ_BASE_SWA, "rope_local_base_freq"),
    ],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Gemma3n {
    fn description(&self) -> &'static Description {
        &GEMMA3N
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        config.default("altup_active_idx", 0);
        config.default("altup_num_inputs", COUNT);
        config.default("hidden_size_per_layer_input", 256);
        config.default("num_kv_shared_layers", 15);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let widths = config.find(&[WIDTHS]).and_then(|(_, widths)| widths.as_array());
        let mut stated = config.clone();
        if let Some(width) = widths.and_then(|widths| widths.first()) {
            stated.set(WIDTHS, width.clone());
        }
        keys.stated(&stated)?;
        if let Some(widths) = widths {
            let widths: Vec<i32> =
                widths.iter().filter_map(|width| width.as_i64()?.try_into().ok()).collect();
            keys.set(key::FEED_FORWARD_LENGTH, Array::from(&widths[..]));
        }
        let cap = config.f32(&["final_logit_softcapping"])?;
        keys.set_f32(key::FINAL_LOGIT_SOFTCAPPING, cap.filter(|&cap| cap != 0.0));
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["sliding_window"])?);
        // Some may be 0.
        let number = |field: &str| config.u32(&[field]).map(Option::unwrap_or_default);
        let streams = number("altup_num_inputs")?;
        if streams != COUNT {
            return Err(hparams::not_computed(config, "altup_num_inputs", streams));
        }
        keys.set(key::ALTUP_ACTIVE_IDX, number("altup_active_idx")?);
        keys.set(key::ALTUP_NUM_INPUTS, streams);
        keys.set(key::EMBEDDING_LENGTH_PER_LAYER_INPUT, number("hidden_size_per_layer_input")?);
        keys.set(key::ATTENTION_SHARED_KV_LAYERS, number("num_kv_shared_layers")?);
        let shares = config.find(&[SPARSITY]).and_then(|(_, shares)| shares.as_array());
        let shares = shares.into_iter().flatten().filter_map(Value::as_f64);
        let bounds: Vec<f32> = shares.map(|share| bound_of(share as f32)).collect();
        keys.set(key::ACTIVATION_SPARSITY_SCALE, Array::from(&bounds[..]));
        let windowed = sliding_window::layers(config, 5)?;
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&windowed[..]));
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (foreign, ours) in OF_STREAMS {
            if let Some(&[index]) = captures(foreign, name).as_deref() {
                let slot = ExpertSlot { index, count: COUNT - 1 };
                let is_one = index < slot.count;
                return Ok(is_one.then(|| Mapping::slot(ours.to_owned(), slot)));
            }
        }
        let scale = captures(SCALE, name);
        let Some(&[block]) = scale.as_deref() else { return Ok(None) };
        Ok(Some(Mapping::one(format!("blk.{block}.altup_correct_scale.weight"), [])))
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let is_embedding = matches!(name, "token_embd.weight" | "per_layer_token_embd.weight");
        let rows = config.u32(&["vocab_size"])?.filter(|_| is_embedding);
        // Those of images and sound, which have no embedding here.
        Ok(rows.map(|rows| Step::Pad { rows: rows.into() }).into_iter().collect())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let metadata = model.metadata();
        let streams: Vec<String> = OF_STREAMS
            .iter()
            .flat_map(|(name, _)| {
                (1..COUNT).map(|index| name.replace("{}", &(index - 1).to_string()))
            })
            .collect();
        let bounds = metadata.array("gemma3n.activation_sparsity_scale");
        let shares = bounds.map(|bounds| {
            let share = |bound: gguf::Value| {
                let bound = bound.to_f64().unwrap_or(f64::NEG_INFINITY);
                if bound == f64::NEG_INFINITY {
                    return 0.0;
                }
                let near = 0.5 * (1.0 + error_function(bound * std::f64::consts::FRAC_1_SQRT_2));
                shortest(near, |share| bound_of(share as f32) == bound as f32)
            };
            bounds.iter().map(share).collect::<Vec<_>>()
        });
        let widths = metadata.array("gemma3n.feed_forward_length");
        let widths =
            widths.map(|widths| widths.iter().filter_map(|w| w.to_u64()).collect::<Vec<_>>());
        let mut exported = exported
            .first(streams.iter().map(String::as_str))
            .patterns([SCALE])
            .set_some(SPARSITY, shares);
        if let Some(widths) = widths {
            exported = exported.without(&[key::FEED_FORWARD_LENGTH]).set(WIDTHS, widths);
        }
        count(model, key::BLOCK_COUNT)?;
        Some(sliding_window::export_of_pattern(model, exported))
    }
}

/// How many standard deviations above the mean this share of normally distributed numbers ends.
///
/// As torch computes it: the inverse of the error function in F32, times the root of 2.
fn bound_of(share: f32) -> f32 {
    let y = 2.0 * share - 1.0;
    if y <= -1.0 {
        return f32::NEG_INFINITY;
    }
    if y >= 1.0 {
        return f32::INFINITY;
    }
    let y = f64::from(y);
    let mut x = 0.0f64;
    for _ in 0..60 {
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp();
        x += ((y - error_function(x)) / slope).clamp(-0.5, 0.5);
    }
    x as f32 * std::f32::consts::SQRT_2
}

/// The error function, by its series.
fn error_function(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    std::f64::consts::FRAC_2_SQRT_PI * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_torch() {
        assert_eq!(bound_of(0.95).to_bits(), 1.644_853_6_f32.to_bits());
        assert_eq!(bound_of(0.0), f32::NEG_INFINITY);
        assert_eq!(bound_of(0.5), 0.0);
    }
}
