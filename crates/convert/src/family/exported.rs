//! What leads back from a GGUF to a checkpoint, apart from what conversion itself says.

use gguf::Model;
use serde_json::{Map, Value};

use super::names::{Table, foreign};

/// What the exporter must know of a family beside its conversion.
#[derive(Clone, Debug)]
pub(crate) struct Exported {
    /// The class name of the model.
    pub class: &'static str,
    /// `model_type` of its configuration.
    pub model_type: &'static str,
    /// All foreign names, with `{}` for the number of the block and then of the expert. Of several
    /// for one tensor the first counts.
    pub patterns: Vec<String>,
    /// Keys under the architecture's name, and the fields that they come from: where the family
    /// has other names than most, or other keys.
    pub fields: Vec<(&'static str, &'static str)>,
    /// Fields that no key holds as it is.
    pub config: Map<String, Value>,
    /// Usual keys that are no field of this class.
    pub without: Vec<&'static str>,
    /// JSON files beside the configuration: names within the directory, contents.
    pub files: Vec<(&'static str, Value)>,
}

impl Exported {
    /// A model whose tensors have the foreign names in `tables`.
    pub(super) fn new(class: &'static str, model_type: &'static str, tables: &[Table]) -> Self {
        let patterns = tables.iter().copied().flat_map(foreign).collect();
        Self {
            class,
            model_type,
            patterns,
            fields: Vec::new(),
            config: Map::new(),
            without: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Foreign names that are in no table.
    pub(super) fn patterns<'p>(mut self, patterns: impl IntoIterator<Item = &'p str>) -> Self {
        self.patterns.extend(patterns.into_iter().map(str::to_owned));
        self
    }

    /// Keys with fields of their own.
    pub(super) fn fields(mut self, fields: &[(&'static str, &'static str)]) -> Self {
        self.fields.extend(fields);
        self
    }

    /// Sets a field of the configuration.
    pub(super) fn set(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.config.insert(field.to_owned(), value.into());
        self
    }

    /// Leaves out the usual fields of these keys.
    pub(super) fn without(mut self, keys: &[&'static str]) -> Self {
        self.without.extend(keys);
        self
    }

    /// Adds files beside the configuration.
    pub(super) fn files(mut self, files: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        self.files.extend(files);
        self
    }
}

/// An unsigned number under the architecture's name.
pub(super) fn number(model: &Model, architecture: &str, key: &str) -> Option<u64> {
    model.metadata().u64(&format!("{architecture}.{key}"))
}

/// The width of a head.
pub(super) fn head_dim(model: &Model, architecture: &str) -> Option<u64> {
    let number = |key| number(model, architecture, key);
    let divided = || number("embedding_length")?.checked_div(number("attention.head_count")?);
    number("attention.key_length").or_else(divided)
}

/// The share of a head's dimensions that rotate: not below the quotient, as programs round what
/// they compute from it down.
pub(super) fn rotated_share(model: &Model, architecture: &str) -> Option<f64> {
    let rotated = number(model, architecture, "rope.dimension_count")? as f64;
    let all = head_dim(model, architecture).filter(|&dim| dim != 0)? as f64;
    let share = rotated / all;
    Some(if share.mul_add(all, -rotated) < 0.0 { share.next_up() } else { share })
}
