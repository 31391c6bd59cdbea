//! `general.sampling.*`: recommended sampler settings.

use std::path::Path;

use gguf::{Error, Metadata, ValueType};
use gguf_checkpoint::json;
use serde_json::{Map, Value};

/// GGUF key, keys in `generation_config.json` (the first present one counts), and type.
const SETTINGS: [(&str, &[&str], ValueType); 12] = [
    ("general.sampling.sequence", &["sequence"], ValueType::String),
    ("general.sampling.top_k", &["top_k"], ValueType::I32),
    ("general.sampling.top_p", &["top_p"], ValueType::F32),
    ("general.sampling.min_p", &["min_p"], ValueType::F32),
    ("general.sampling.xtc_probability", &["xtc_probability"], ValueType::F32),
    ("general.sampling.xtc_threshold", &["xtc_threshold"], ValueType::F32),
    ("general.sampling.temp", &["temperature"], ValueType::F32),
    ("general.sampling.penalty_last_n", &["penalty_last_n"], ValueType::I32),
    ("general.sampling.penalty_repeat", &["penalty_repeat", "repetition_penalty"], ValueType::F32),
    ("general.sampling.mirostat", &["mirostat"], ValueType::I32),
    ("general.sampling.mirostat_tau", &["mirostat_tau"], ValueType::F32),
    ("general.sampling.mirostat_eta", &["mirostat_eta"], ValueType::F32),
];

/// Returns the settings in `generation_config.json`.
///
/// As in llama.cpp's converter, an invalid file counts as missing. So does a setting of the wrong type.
pub(super) fn recommended(dir: &Path) -> Metadata {
    let config = json::read_optional(&dir.join("generation_config.json")).ok().flatten();
    let setting = |&(key, names, value_type): &(&'static str, &[&str], _)| {
        let value = names.iter().find_map(|name| config.as_ref()?.get(name))?;
        Some((key, convert(value, value_type)?))
    };
    SETTINGS.iter().filter_map(setting).collect()
}

/// Returns the fields of `generation_config.json` for the settings in `metadata`.
pub(crate) fn generation_config(metadata: &Metadata) -> Map<String, Value> {
    let field = |&(key, names, value_type): &(&str, &[&str], ValueType)| {
        let value = match value_type {
            ValueType::String => metadata.str(key)?.into(),
            ValueType::I32 => metadata.get(key)?.to_i64()?.into(),
            // The shortest decimal number that parses to this F32.
            _ => (metadata.f64(key)? as f32).to_string().parse::<f64>().ok()?.into(),
        };
        Some(((*names.last()?).to_owned(), value))
    };
    SETTINGS.iter().filter_map(field).collect()
}

/// Replaces settings in `sampling` by those of the override file at `path`. Null removes a setting.
///
/// # Errors
/// If a setting has the wrong type.
pub(super) fn apply(
    sampling: &mut Metadata,
    overrides: &Map<String, Value>,
    path: &Path,
) -> Result<(), Error> {
    let mut result = Metadata::new();
    for (key, _, value_type) in SETTINGS {
        let value = match overrides.get(key) {
            Some(Value::Null) => None,
            Some(value) => Some(convert(value, value_type).ok_or_else(|| {
                let what = format!("`{key}` is {value}; expected a value of type {value_type}");
                let help = "correct the value, or remove the key";
                Error::input("metadata-override", path, what, help)
            })?),
            None => sampling.remove(key),
        };
        if let Some(value) = value {
            result.push(key, value);
        }
    }
    *sampling = result;
    Ok(())
}

fn convert(value: &Value, value_type: ValueType) -> Option<gguf::Value> {
    Some(match value_type {
        ValueType::String => value.as_str().filter(|text| !text.is_empty())?.to_owned().into(),
        ValueType::I32 => i32::try_from(value.as_i64()?).ok()?.into(),
        // Some 64-bit numbers overflow F32.
        _ => Some(value.as_f64()? as f32).filter(|number| number.is_finite())?.into(),
    })
}
