//! Description of an export, beyond the tables of the conversion.

use gguf::Shape;
use gguf_pipeline::Tensor;
use gguf_store::Model;
use serde_json::{Map, Value};

use crate::convert::assembly;
use crate::convert::tensor_names::{Table, foreign};
use crate::schema::{HyperParameters, key};

/// Description of an export.
#[derive(Clone)]
pub struct Exported {
    /// Class name of the model.
    pub class: &'static str,
    /// `model_type` of its configuration.
    pub model_type: &'static str,
    /// Checkpoint tensor names, with `{}` for the indices of layer and expert. The first match counts.
    pub patterns: Vec<String>,
    /// Pairs of a key under the architecture's name and its field, where they differ from the usual ones.
    pub fields: Vec<(&'static str, &'static str)>,
    /// Fields whose values no key has unchanged.
    pub config: Map<String, Value>,
    /// Fields of RoPE scaling that no key has.
    pub scaling: Map<String, Value>,
    /// Usual keys that are no field of this class.
    pub without: Vec<&'static str>,
    /// Additional JSON files: names and contents.
    pub files: Vec<(&'static str, Value)>,
    /// Fields that the conversion infers from tensor values or another model.
    pub unwritten: Map<String, Value>,
    /// Computed tensors.
    pub tensors: Vec<Tensor>,
    /// Names of the model's tensors that computed tensors replace.
    pub replaced: Vec<String>,
}

impl Exported {
    /// Returns the description of a model with the checkpoint names in `tables`.
    pub fn new(class: &'static str, model_type: &'static str, tables: &[Table]) -> Self {
        let patterns = tables.iter().copied().flat_map(foreign).collect();
        Self {
            class,
            model_type,
            patterns,
            fields: Vec::new(),
            config: Map::new(),
            scaling: Map::new(),
            without: Vec::new(),
            files: Vec::new(),
            unwritten: Map::new(),
            tensors: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// Sets another class than the converter's first.
    pub fn class(self, class: &'static str, model_type: &'static str) -> Self {
        Self { class, model_type, ..self }
    }

    /// Adds checkpoint names in front of all others.
    pub fn first<'p>(mut self, patterns: impl IntoIterator<Item = &'p str>) -> Self {
        self.patterns.splice(0..0, patterns.into_iter().map(str::to_owned));
        self
    }

    /// Removes the checkpoint names of a table.
    pub fn without_names(mut self, table: Table) -> Self {
        let unwanted: Vec<String> = foreign(table).collect();
        self.patterns.retain(|pattern| !unwanted.contains(pattern));
        self
    }

    /// Adds checkpoint names.
    pub fn patterns<'p>(mut self, patterns: impl IntoIterator<Item = &'p str>) -> Self {
        self.patterns.extend(patterns.into_iter().map(str::to_owned));
        self
    }

    /// Adds pairs of key and field.
    pub fn fields(mut self, fields: &[(&'static str, &'static str)]) -> Self {
        self.fields.extend(fields);
        self
    }

    /// Sets a field of the configuration.
    pub fn set(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.config.insert(field.to_owned(), value.into());
        self
    }

    /// Sets a field if there is a value.
    pub fn set_some(self, field: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(field, value),
            None => self,
        }
    }

    /// Adds the prefix to all checkpoint names.
    pub fn prefixed(mut self, prefix: &str) -> Self {
        for pattern in self.patterns.iter_mut().filter(|pattern| !pattern.starts_with("lm_head.")) {
            pattern.insert_str(0, prefix);
        }
        self
    }

    /// Sets a field of RoPE scaling, if the model has one.
    pub fn scaling(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.scaling.insert(field.to_owned(), value.into());
        self
    }

    /// Removes the usual fields of these keys.
    pub fn without(mut self, keys: &[&'static str]) -> Self {
        self.without.extend(keys);
        self
    }

    /// Sets a field that config.json lacks.
    pub fn unwritten(mut self, field: &str, value: Value) -> Self {
        self.unwritten.insert(field.to_owned(), value);
        self
    }

    /// Adds a computed vector.
    pub fn vector(mut self, name: String, values: Vec<f32>) -> Self {
        self.tensors.push(assembly::computed(name, values));
        self
    }

    /// Adds a matrix of one row of ones.
    pub fn row_of_ones(mut self, name: String, shape: Shape) -> Self {
        let ones = vec![1.0; shape.row_len() as usize];
        self.tensors.push(Tensor { shape, ..assembly::computed(name, ones) });
        self
    }

    /// Adds a tensor that replaces one of the model.
    pub fn in_place_of(mut self, ours: &str, tensor: Tensor) -> Self {
        self.replaced.push(ours.to_owned());
        self.tensors.push(tensor);
        self
    }

    /// Adds JSON files.
    pub fn files(mut self, files: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        self.files.extend(files);
        self
    }
}

/// Returns a number under the architecture's name.
pub fn number(model: &Model, key: &str) -> Option<f64> {
    let value = HyperParameters::from_metadata(model.metadata()).ok()?.value(key)?;
    value.to_f64().or_else(|| value.to_u64().map(|number| number as f64))
}

/// Returns an unsigned integer under the architecture's name.
pub fn count(model: &Model, key: &str) -> Option<u64> {
    HyperParameters::from_metadata(model.metadata()).ok()?.value(key)?.to_u64()
}

/// Returns the head width.
pub fn head_dim(model: &Model) -> Option<u64> {
    HyperParameters::from_metadata(model.metadata()).ok()?.u64("attention.key_length").ok()
}

/// Returns the number of key/value heads.
pub fn head_count_kv(model: &Model) -> Option<u64> {
    HyperParameters::from_metadata(model.metadata()).ok()?.u64("attention.head_count_kv").ok()
}

/// Returns the ratio of two keys.
pub fn ratio(model: &Model, key: &str, of: &str) -> Option<Value> {
    Some(whole(number(model, key)? / number(model, of)?))
}

/// Returns a number as JSON, as an integer if it has no fraction.
pub fn whole(number: f64) -> Value {
    let is_whole = number.fract() == 0.0 && (0.0..1e9).contains(&number);
    if is_whole { (number as u64).into() } else { number.into() }
}

/// Returns whether the model has a tensor.
pub fn has(model: &Model, tensor: &str) -> bool {
    model.tensors().iter().any(|found| *found.info.name == *tensor)
}

/// Returns whether the model has a tensor; true for a model without tensors.
pub fn may_have(model: &Model, tensor: &str) -> bool {
    model.tensors().is_empty() || has(model, tensor)
}

/// Returns the share of rotary dimensions in a head.
pub fn rotated_share(model: &Model) -> Option<f64> {
    let rotated = number(model, key::ROPE_DIMENSION_COUNT)?;
    let head_dim = head_dim(model).filter(|&dim| dim != 0)? as f64;
    // Loaders round the product down.
    let leads_back = |share| (rotated..rotated + 1e-6).contains(&(share * head_dim));
    Some(shortest(rotated / head_dim, leads_back))
}

/// Returns the number with the fewest digits near `x` for which `leads_back` is true; `x` if there is none.
pub fn shortest(x: f64, leads_back: impl Fn(f64) -> bool) -> f64 {
    let mut rounded = (0..17).filter_map(|digits| format!("{x:.digits$e}").parse().ok());
    rounded.find(|number| leads_back(*number)).unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computed_numbers_become_those_that_were_written() {
        let residual_scale = (1.4 / 40f64.sqrt()) as f32;
        let depth = f64::from(residual_scale) * 40f64.sqrt();
        assert_ne!(depth, 1.4);
        let leads_back = |depth: f64| (depth / 40f64.sqrt()) as f32 == residual_scale;
        assert_eq!(shortest(depth, leads_back), 1.4);
        assert_eq!(shortest(1.0 / 3.0, |_| false), 1.0 / 3.0);
    }
}
