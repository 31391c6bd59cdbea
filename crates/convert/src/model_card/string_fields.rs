//! Macro for structs of optional strings that declares each key next to its field.

use serde_json::Value;

/// Declares a struct with `Option<String>` fields, each with its GGUF key and its keys in model cards, and (after
/// `..`) fields of other types.
macro_rules! string_fields {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $field:ident = $key:literal $([$($card:literal),*])?,)*
            ..
            $($(#[$other_doc:meta])* $other:ident: $other_type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: Option<String>,)*
            $($(#[$other_doc])* pub $other: $other_type,)*
        }

        impl $name {
            /// Returns every string with its key, in the order of the file.
            fn strings(&self) -> impl Iterator<Item = (&'static str, &Option<String>)> {
                [$(($key, &self.$field),)*].into_iter()
            }

            /// Returns every string with its key and its keys in model cards.
            fn strings_mut(
                &mut self,
            ) -> impl Iterator<Item = (&'static str, &'static [&'static str], &mut Option<String>)>
            {
                [$(($key, &[$($($card),*)?][..], &mut self.$field),)*].into_iter()
            }
        }
    };
}
pub(super) use string_fields;

/// Returns a value as a string; `None` if it is null, empty or an object.
///
/// Numbers and booleans, on which llama.cpp's converter fails, become their decimal or name. Lists are joined by
/// commas, as llama.cpp's converter joins licenses.
pub(super) fn string(value: &Value) -> Option<String> {
    let text = match value {
        Value::Array(items) => items.iter().filter_map(scalar).collect::<Vec<_>>().join(","),
        other => scalar(other)?,
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the strings of a list, or a single string.
pub(super) fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(scalar).collect(),
        other => scalar(other).into_iter().collect(),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
