//! `general.sampling.*`: the sampler settings that the makers of a model recommend.

use std::path::Path;

use gguf::{Error, Metadata, ValueType};
use gguf_checkpoint::json;
use serde_json::{Map, Value};

/// Key in the file, keys in `generation_config.json` (the first one present counts), type.
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

/// The settings in `generation_config.json`.
///
/// Recommendations are not worth a failed conversion: a file that is broken counts as missing, as
/// for llama.cpp's converter, and so does a setting of the wrong type.
pub(super) fn recommended(dir: &Path) -> Metadata {
    let config = json::read_optional(&dir.join("generation_config.json")).ok().flatten();
    let setting = |&(key, names, value_type): &(&'static str, &[&str], _)| {
        let value = names.iter().find_map(|name| config.as_ref()?.get(name))?;
        Some((key, convert(value, value_type)?))
    };
    SETTINGS.iter().filter_map(setting).collect()
}

/// The fields of `generation_config.json` that give the settings in `metadata`.
pub(crate) fn written(metadata: &Metadata) -> Map<String, Value> {
    let field = |&(key, names, value_type): &(&str, &[&str], ValueType)| {
        let value = match value_type {
            ValueType::String => metadata.str(key)?.into(),
            ValueType::I32 => metadata.get(key)?.to_i64()?.into(),
            // The fewest digits that read back as this single.
            _ => (metadata.f64(key)? as f32).to_string().parse::<f64>().ok()?.into(),
        };
        Some(((*names.last()?).to_owned(), value))
    };
    SETTINGS.iter().filter_map(field).collect()
}

/// Puts the settings of an override file, read from `path`, in place of those in `sampling`; a null
/// removes one.
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
                let what = format!("`{key}` is {value}, which is no {value_type}");
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
        // JSON has 64-bit numbers, of which some have no finite single.
        _ => Some(value.as_f64()? as f32).filter(|number| number.is_finite())?.into(),
    })
}
