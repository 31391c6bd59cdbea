//! Structs of optional texts whose keys are written once, beside the field.

use serde_json::Value;

/// Declares a struct with `Option<String>` fields, each with its key in the file and the keys that
/// a model card may have for it, then (after `..`) fields of other types.
macro_rules! texts {
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
            /// Every text with its key, in the order of the file.
            fn texts(&self) -> impl Iterator<Item = (&'static str, &Option<String>)> {
                [$(($key, &self.$field),)*].into_iter()
            }

            /// Every text with its key and its keys in model cards.
            fn texts_mut(
                &mut self,
            ) -> impl Iterator<Item = (&'static str, &'static [&'static str], &mut Option<String>)>
            {
                [$(($key, &[$($($card),*)?][..], &mut self.$field),)*].into_iter()
            }
        }
    };
}
pub(super) use texts;

/// The text of a value that should be one; `None` if there is none, or it is empty.
///
/// Numbers and truth values, on which llama.cpp's converter fails, are what they print as. A list
/// is joined by commas, as licences are by llama.cpp's converter.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Array(items) => items.iter().filter_map(scalar).collect::<Vec<_>>().join(","),
        other => scalar(other)?,
    };
    (!text.is_empty()).then_some(text)
}

/// The texts of a list, or a single one.
pub(super) fn list(value: &Value) -> Vec<String> {
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
