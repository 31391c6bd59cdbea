//! Fields of the configuration classes of `transformers`, and the refusal of values that GGUF cannot hold.
//!
//! `configurations.json` has a row for each configuration class that converts, by `model_type`:
//!
//! - `class`: the configuration class; `classes`: the model classes that have it.
//! - `written`: fields that become keys, or choose or change tensors.
//! - `implied`: fields that the tensors of the checkpoint imply.
//! - `irrelevant`: fields that do not change logits or hidden states: training, generation, names, inputs of other
//!   modalities. `common` lists those that every class has.
//! - `checked`: fields for which the converter has a rule of its own.
//! - `refused`: fields that GGUF has no place for, with the values that the architecture computes. A missing field has one
//!   of them by the default of the class.
//! - `required`: as `refused`, where the default of the class is another value, so that the field must be stated.
//! - `rope`: types of RoPE scaling that convert; without it, all of them. `yarn.truncate=false` stands for YaRN whose
//!   bounds are not rounded, and `sliding_attention.TYPE` for scaling of sliding-window layers.
//! - `noted`: fields that GGUF holds for a part of the model only: all values convert, those not listed with a note.
//! - `aliases`: other names of fields of `refused`, which the class accepts.
//! - `text`: `model_type` of the text model inside a multimodal model, if its configuration states none.
//!
//! `interop/configurations/fields.py` compares the table with the classes of `transformers`.

use std::sync::LazyLock;

use gguf::Error;
use gguf_checkpoint::config::Config;
use serde_json::{Map, Value};

static TABLE: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("configurations.json")).unwrap_or_default());

/// Names of one activation function, by function.
const ACTIVATIONS: [&[&str]; 4] = [
    &["silu", "swish"],
    &["gelu", "gelu_python"],
    &["gelu_pytorch_tanh", "gelu_new", "gelu_fast", "gelu_python_tanh", "gelu_accurate"],
    &["relu2", "relu_squared"],
];

/// The tanh approximation of GELU differs from GELU by at most this much.
const GELU_ERROR: f64 = 5e-4;

/// Fails if config.json has a field with a value that no key and no tensor of the converted model can hold. Returns a note
/// for each value that the model approximates.
///
/// Fields that the class in `transformers` does not have are ignored, as that class ignores them.
///
/// # Errors
/// If a field has such a value, or lacks a value that differs from the default of its class.
pub fn check(config: &Config) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for row in rows(config) {
        for (list, is_required) in [("refused", false), ("required", true)] {
            for (field, computed) in row.get(list).and_then(Value::as_object).into_iter().flatten()
            {
                let computed = list_of(computed);
                match (stated(config, row, field), is_required) {
                    (Some(value), _) => notes.extend(check_value(config, field, value, computed)?),
                    (None, true) => return Err(lost(config, field, "missing", computed)),
                    (None, false) => {}
                }
            }
        }
        for (field, known) in row.get("noted").and_then(Value::as_object).into_iter().flatten() {
            let known = list_of(known);
            let value = stated(config, row, field);
            if let Some(value) =
                value.filter(|value| !known.iter().any(|known| is_same(known, value)))
            {
                notes.push(format!(
                    "`{field}` is {value}: GGUF has one value for the whole model, but `transformers` computes a part of it with {}",
                    all(known)
                ));
            }
        }
    }
    Ok(notes)
}

fn list_of(values: &Value) -> &[Value] {
    values.as_array().map_or(&[], Vec::as_slice)
}

/// Returns whether `transformers` has the model class.
pub fn is_known_class(config: &Config) -> bool {
    !rows(config).is_empty()
}

/// Returns whether a type of RoPE scaling converts: one without a dot unless a row lists others, one with a dot only if a
/// row lists it.
pub fn has_rope_scaling(config: &Config, kind: &str) -> bool {
    let lists: Vec<_> = rows(config).iter().filter_map(|row| row.get("rope")?.as_array()).collect();
    match lists.last() {
        Some(kinds) => kinds.iter().any(|listed| listed == kind),
        None => !kind.contains('.'),
    }
}

/// Returns the mark of a field in the rows of the model.
pub fn mark(config: &Config, field: &str) -> Option<&'static str> {
    const LISTS: [&str; 4] = ["written", "implied", "irrelevant", "checked"];
    rows(config).iter().rev().find_map(|row| {
        LISTS.into_iter().find(|list| {
            let fields = row.get(*list).and_then(Value::as_array);
            fields.is_some_and(|fields| fields.iter().any(|name| name == field))
        })
    })
}

/// Returns the rows of a model: that of its class, and that of the text model inside.
fn rows(config: &Config) -> Vec<&'static Value> {
    let Ok(class) = config.class() else { return Vec::new() };
    let has_class = |row: &&Value| {
        row.get("classes")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|name| name == class))
    };
    let Some((model_type, row)) = TABLE.iter().find(|(_, row)| has_class(row)) else {
        return Vec::new();
    };
    let Some(default) = row.get("text").and_then(Value::as_str) else { return vec![row] };
    let inner = config.json().get("model_type").and_then(Value::as_str);
    let inner = inner.filter(|inner| inner != model_type).unwrap_or(default);
    std::iter::once(row).chain(TABLE.get(inner)).collect()
}

/// Returns the value of a field, which may be stated under another name.
fn stated<'c>(config: &'c Config, row: &Value, field: &str) -> Option<&'c Value> {
    let value = |name: &str| name.split('.').try_fold(config.json(), |value, part| value.get(part));
    let aliases = row.get("aliases").and_then(Value::as_object).into_iter().flatten();
    let mut aliases = aliases.filter(|(_, meant)| *meant == field);
    value(field).or_else(|| aliases.find_map(|(name, _)| value(name)))
}

/// Fails if a value is none of those that the architecture computes. Returns a note if it is approximated.
fn check_value(
    config: &Config,
    field: &str,
    value: &Value,
    computed: &[Value],
) -> Result<Option<String>, Error> {
    if computed.iter().any(|known| covers(config, known, value)) {
        return Ok(None);
    }
    let known = computed.first().unwrap_or(&Value::Null);
    if is_gelu(value) && is_gelu(known) {
        return Ok(Some(format!(
            "`{field}` is {value}, but models of this architecture compute {known}: their values differ by up to {GELU_ERROR:e}"
        )));
    }
    Err(lost(config, field, &shown(value), computed))
}

/// Returns whether an entry of the table stands for the value.
fn covers(config: &Config, known: &Value, value: &Value) -> bool {
    let Some((form, of)) = known.as_object().and_then(|form| form.iter().next()) else {
        return is_same(known, value);
    };
    match form.as_str() {
        "not" => !is_same(of, value),
        "field" => of
            .as_str()
            .and_then(|field| config.json().get(field))
            .is_none_or(|of| is_same(of, value)),
        "pattern" => {
            let pattern = list_of(of).iter().cycle();
            value
                .as_array()
                .is_some_and(|list| list.iter().zip(pattern).all(|(value, of)| is_same(of, value)))
        }
        "limits" => {
            let (low, high) = (value[0].as_f64(), value[1].as_f64());
            // An infinite limit is no number of JSON.
            low.is_none_or(|low| low <= of[0].as_f64().unwrap_or(0.0))
                && high.is_none_or(|high| high >= of[1].as_f64().unwrap_or(f64::INFINITY))
        }
        _ => false,
    }
}

fn is_same(known: &Value, value: &Value) -> bool {
    match (known, value) {
        (Value::Number(known), Value::Number(value)) => known.as_f64() == value.as_f64(),
        (Value::String(known), Value::String(value)) => function(known) == function(value),
        _ => known == value,
    }
}

/// Returns the first name of an activation function; other texts as they are.
fn function(name: &str) -> &str {
    ACTIVATIONS.iter().find(|names| names.contains(&name)).map_or(name, |names| names[0])
}

fn is_gelu(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|name| ACTIVATIONS[1].contains(&name) || ACTIVATIONS[2].contains(&name))
}

/// Returns the error of a field whose value a conversion would lose.
fn lost(config: &Config, field: &str, stated: &str, computed: &[Value]) -> Error {
    let known = all(computed);
    let what = format!(
        "`{field}` is {stated}, which llama.cpp does not support: GGUF has no key for it, and every program that loads the \
         converted model would compute with {known}"
    );
    let help = format!(
        "a conversion would change the results of this model; if the field is wrong, set it to {known}"
    );
    Error::input("config-unsupported", config.path(), what, help)
}

fn all(values: &[Value]) -> String {
    let shown = |value: &Value| match value.as_object().and_then(|form| form.iter().next()) {
        Some((form, of)) => match form.as_str() {
            "not" => format!("another value than {of}"),
            "field" => format!("that of `{}`", of.as_str().unwrap_or_default()),
            "pattern" => format!("a repetition of {of}"),
            _ => of.to_string(),
        },
        None => shown(value),
    };
    values.iter().map(shown).collect::<Vec<_>>().join(" or ")
}

fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
