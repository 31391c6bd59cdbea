//! `rope_scaling` from the keys and tensors of RoPE scaling.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_models::convert::{implied_attention_factor, llama3_factors};
use gguf_store::Model;
use serde_json::{Map, Value, json};

use super::value::value;
use gguf_lora::values as floats;

/// Key under `rope.scaling`, field.
const SCALING: [(&str, &str); 7] = [
    ("type", "rope_type"),
    ("factor", "factor"),
    ("original_context_length", "original_max_position_embeddings"),
    ("yarn_ext_factor", "extrapolation_factor"),
    ("yarn_attn_factor", "attention_factor"),
    ("yarn_beta_fast", "beta_fast"),
    ("yarn_beta_slow", "beta_slow"),
];

/// Returns `rope_scaling` for a configuration with all other fields; empty without scaling. `is_usual` returns whether
/// a key maps to its usual field.
///
/// # Errors
/// If a tensor of factors cannot be read.
pub(super) fn scaling(
    model: &Model,
    architecture: &str,
    is_usual: impl Fn(&str) -> bool,
    config: &Map<String, Value>,
) -> Result<Map<String, Value>, Error> {
    let mut scaling = stated(model.metadata(), architecture, &is_usual);
    let index = model.index();
    let tensor = |name| index.get(name).map(|tensor| floats(tensor)).transpose();
    if let Some(factors) = tensor("rope_freqs.weight")? {
        scaling.extend(llama3(config, &factors));
    }
    let long = tensor("rope_factors_long.weight")?;
    if let (Some(long), Some(short)) = (long, tensor("rope_factors_short.weight")?) {
        // All versions of `transformers` read this field.
        if !scaling.contains_key("rope_type") {
            scaling.insert("type".into(), "longrope".into());
        }
        scaling.insert("long_factor".into(), shortest(&long));
        scaling.insert("short_factor".into(), shortest(&short));
    }
    attention_factor(model.metadata(), architecture, is_usual, config, &mut scaling);
    let has_kind = ["rope_type", "type"].iter().any(|field| scaling.contains_key(*field));
    Ok(if has_kind { scaling } else { Map::new() })
}

/// Returns the fields of the keys.
fn stated(
    metadata: &Metadata,
    architecture: &str,
    is_usual: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    let fields = SCALING.iter().filter_map(|(key, field)| {
        let key = format!("rope.scaling.{key}");
        let value = value(metadata, &format!("{architecture}.{key}"))?;
        (is_usual(&key) && value != "none").then(|| ((*field).to_owned(), value))
    });
    fields.collect()
}

/// Adds the attention factor of YaRN or LongRoPE, unless it follows from the other fields. The key of YaRN is a multiple of
/// the factor that follows.
fn attention_factor(
    metadata: &Metadata,
    architecture: &str,
    is_usual: impl Fn(&str) -> bool,
    config: &Map<String, Value>,
    scaling: &mut Map<String, Value>,
) {
    const KEY: &str = "rope.scaling.attn_factor";
    let stated = value(metadata, &format!("{architecture}.{KEY}"));
    let Some(stated) = stated.filter(|_| is_usual(KEY)).and_then(|value| value.as_f64()) else {
        return;
    };
    let mut config = config.clone();
    config.insert("rope_scaling".into(), scaling.clone().into());
    let Ok(Some(implied)) = implied_attention_factor(&Config::of(config.into())) else { return };
    let is_multiple = scaling.get("rope_type").is_some_and(|kind| kind == "yarn");
    let exact = if is_multiple { stated * implied } else { stated };
    if (exact / implied - 1.0).abs() < 1e-6 {
        return;
    }
    // The shortest number that converts to the same key.
    let short = (exact as f32).to_string().parse().unwrap_or(exact);
    let is_same = !is_multiple || (short / implied) as f32 == stated as f32;
    scaling.insert("attention_factor".into(), if is_same { short } else { exact }.into());
}

/// Returns the shortest decimal numbers that parse to these F32 numbers.
fn shortest(factors: &[f32]) -> Value {
    factors.iter().map(|factor| factor.to_string().parse::<f64>().ok()).collect()
}

/// Returns the scaling with these factors: the nearest with the frequency bounds of Llama 3 or Llama 4; empty if none is
/// near.
///
/// The bounds are assumed because the factors only determine the ratio between original context and bounds.
fn llama3(config: &Map<String, Value>, factors: &[f32]) -> Map<String, Value> {
    // Versions of torch round differently.
    const NEAR: f32 = 1e-5;
    let most = factors.iter().copied().fold(1.0, f32::max);
    // The largest factor is the scaling factor, unless all wavelengths are short.
    let scales = [most, 8.0, 32.0, 2.0, 4.0, 16.0, 64.0];
    let contexts = || std::iter::once(8192).chain((4..=24).map(|power| 1u32 << power));
    let bounds = [4.0, 1.0].into_iter();
    let all = bounds.flat_map(|high| contexts().map(move |original| (high, original)));
    let candidates = all.flat_map(|(high, original)| {
        scales.map(|factor| {
            let scaling = json!({
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": 1.0,
                "high_freq_factor": high,
                "original_max_position_embeddings": original,
            });
            (difference(config, &scaling, factors), scaling)
        })
    });
    match candidates.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((difference, Value::Object(scaling))) if difference < NEAR => scaling,
        _ => Map::new(),
    }
}

/// Returns the maximum relative difference between `factors` and those of `scaling`.
fn difference(config: &Map<String, Value>, scaling: &Value, factors: &[f32]) -> f32 {
    let mut config = config.clone();
    config.insert("rope_scaling".into(), scaling.clone());
    match llama3_factors(&Config::of(config.into())) {
        Ok(Some(computed)) if computed.len() == factors.len() => {
            let pairs = computed.iter().zip(factors);
            let shares = pairs.map(|(computed, factor)| (computed / factor - 1.0).abs());
            shares.max_by(f32::total_cmp).unwrap_or(0.0)
        }
        _ => f32::INFINITY,
    }
}
