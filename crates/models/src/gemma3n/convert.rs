//! Conversion of `Gemma3nForCausalLM`. Projections of the AltUp streams are stacked; activation
//! sparsity becomes the number of standard deviations above the mean; embeddings are padded to the
//! vocabulary size.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, shortest};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, ExpertSlot, Exported, Mapping, VocabularyKind, defaults, hparams,
    sliding_window,
};
use crate::gemma2::convert::NORMS;
use crate::gemma4::convert::PER_LAYER;
use crate::schema::key;

const ALTUP_NAMES: Table = &[
    ("model.layers.{}.altup.correction_coefs", "blk.{}.altup_correct_coef"),
    ("model.layers.{}.altup.prediction_coefs", "blk.{}.altup_predict_coef"),
    ("model.layers.{}.altup.modality_router", "blk.{}.altup_router"),
    ("model.layers.{}.altup.router_norm", "blk.{}.altup_router_norm"),
    ("model.layers.{}.laurel.linear_left", "blk.{}.laurel_l"),
    ("model.layers.{}.laurel.linear_right", "blk.{}.laurel_r"),
    ("model.layers.{}.laurel.post_laurel_norm", "blk.{}.laurel_post_norm"),
];

const CORRECT_OUTPUT_SCALE: &str = "model.layers.{}.altup.correct_output_scale";

/// Projections of all streams but the first: checkpoint name of one, GGUF name of the stack.
const STREAM_PROJECTIONS: [(&str, &str); 2] = [
    ("model.altup_projections.{}.weight", "altup_proj.weight"),
    ("model.altup_unembed_projections.{}.weight", "altup_unembd_proj.weight"),
];

/// Number of AltUp streams that runtimes support.
const STREAM_COUNT: u32 = 4;

const SPARSITY_PATTERN: &str = "activation_sparsity_pattern";

const INTERMEDIATE_SIZE: &str = "intermediate_size";

pub(crate) struct Gemma3n;

/// Description of [`Gemma3n`].
pub(crate) static GEMMA3N: Description = Description {
    classes: &["Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"],
    architecture: "gemma3n",
    model_type: "gemma3n_text",
    vocabulary: VocabularyKind::Gemma { first: false },
    tensor_names: &[NORMS, PER_LAYER, ALTUP_NAMES, LLAMA_LIKE],
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
        config.default("altup_num_inputs", STREAM_COUNT);
        config.default("hidden_size_per_layer_input", 256);
        config.default("num_kv_shared_layers", 15);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let widths = config.find(&[INTERMEDIATE_SIZE]).and_then(|(_, widths)| widths.as_array());
        let mut stated = config.clone();
        if let Some(width) = widths.and_then(|widths| widths.first()) {
            stated.set(INTERMEDIATE_SIZE, width.clone());
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
        // `require_u32` rejects 0, which is valid for some of these fields.
        let number = |field: &str| config.u32(&[field]).map(Option::unwrap_or_default);
        let streams = number("altup_num_inputs")?;
        if streams != STREAM_COUNT {
            return Err(hparams::not_computed(config, "altup_num_inputs", streams));
        }
        keys.set(key::ALTUP_ACTIVE_IDX, number("altup_active_idx")?);
        keys.set(key::ALTUP_NUM_INPUTS, streams);
        keys.set(key::EMBEDDING_LENGTH_PER_LAYER_INPUT, number("hidden_size_per_layer_input")?);
        keys.set(key::ATTENTION_SHARED_KV_LAYERS, number("num_kv_shared_layers")?);
        let sparsities =
            config.find(&[SPARSITY_PATTERN]).and_then(|(_, sparsities)| sparsities.as_array());
        let sparsities = sparsities.into_iter().flatten().filter_map(Value::as_f64);
        let quantiles: Vec<f32> =
            sparsities.map(|sparsity| normal_quantile(sparsity as f32)).collect();
        keys.set(key::ACTIVATION_SPARSITY_SCALE, Array::from(&quantiles[..]));
        let sliding = sliding_window::layers(config, 5)?;
        keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&sliding[..]));
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        for (hf_name, gguf_name) in STREAM_PROJECTIONS {
            if let Some(&[index]) = captures(hf_name, name).as_deref() {
                let slot = ExpertSlot { index, count: STREAM_COUNT - 1 };
                let is_stream = index < slot.count;
                return Ok(is_stream.then(|| Mapping::slot(gguf_name.to_owned(), slot)));
            }
        }
        let scale = captures(CORRECT_OUTPUT_SCALE, name);
        let Some(&[block]) = scale.as_deref() else { return Ok(None) };
        Ok(Some(Mapping::one(format!("blk.{block}.altup_correct_scale.weight"), [])))
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let is_embedding = matches!(name, "token_embd.weight" | "per_layer_token_embd.weight");
        let rows = config.u32(&["vocab_size"])?.filter(|_| is_embedding);
        // Rows of image and audio tokens, which have no text embedding.
        Ok(rows.map(|rows| Step::Pad { rows: rows.into() }).into_iter().collect())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let metadata = model.metadata();
        let streams: Vec<String> = STREAM_PROJECTIONS
            .iter()
            .flat_map(|(name, _)| {
                (1..STREAM_COUNT).map(|index| name.replace("{}", &(index - 1).to_string()))
            })
            .collect();
        let quantiles = metadata.array("gemma3n.activation_sparsity_scale");
        let sparsities = quantiles.map(|quantiles| {
            let sparsity = |quantile: gguf::Value| {
                let quantile = quantile.to_f64().unwrap_or(f64::NEG_INFINITY);
                if quantile == f64::NEG_INFINITY {
                    return 0.0;
                }
                let near = 0.5 * (1.0 + error_function(quantile * std::f64::consts::FRAC_1_SQRT_2));
                shortest(near, |sparsity| normal_quantile(sparsity as f32) == quantile as f32)
            };
            quantiles.iter().map(sparsity).collect::<Vec<_>>()
        });
        let widths = metadata.array("gemma3n.feed_forward_length");
        let widths =
            widths.map(|widths| widths.iter().filter_map(|w| w.to_u64()).collect::<Vec<_>>());
        let mut exported = exported
            .first(streams.iter().map(String::as_str))
            .patterns([CORRECT_OUTPUT_SCALE])
            .set_some(SPARSITY_PATTERN, sparsities);
        if let Some(widths) = widths {
            exported = exported.without(&[key::FEED_FORWARD_LENGTH]).set(INTERMEDIATE_SIZE, widths);
        }
        count(model, key::BLOCK_COUNT)?;
        Some(sliding_window::export_of_pattern(model, exported))
    }
}

/// Returns the quantile function of the standard normal distribution, `sqrt(2) erfinv(2 p - 1)`.
///
/// As torch computes it: the inverse error function rounded to F32, times sqrt(2).
fn normal_quantile(sparsity: f32) -> f32 {
    let y = 2.0 * sparsity - 1.0;
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

/// Returns the error function, by its Taylor series.
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
    fn quantiles_match_torch() {
        assert_eq!(normal_quantile(0.95).to_bits(), 1.644_853_6_f32.to_bits());
        assert_eq!(normal_quantile(0.0), f32::NEG_INFINITY);
        assert_eq!(normal_quantile(0.5), 0.0);
    }
}
