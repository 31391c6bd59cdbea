//! What leads back from a GGUF to a checkpoint, apart from what conversion itself says.

use crate::schema::Hyper;
use gguf::Shape;
use gguf_pipeline::Tensor;
use gguf_store::Model;
use serde_json::{Map, Value};

use crate::convert::assembly;
use crate::convert::tensor_names::{Table, foreign};
use crate::schema::key;

/// What the exporter must know of a family beside its conversion.
#[derive(Clone)]
pub struct Exported {
    /// The class name of the model.
    pub class: &'static str,
    /// `model_type` of its configuration.
    pub model_type: &'static str,
    /// All foreign names, with `{}` for the number of the layer and then of the expert. Of several
    /// for one tensor the first counts.
    pub patterns: Vec<String>,
    /// Keys under the architecture's name, and the fields that they come from: where the family
    /// has other names than most, or other keys.
    pub fields: Vec<(&'static str, &'static str)>,
    /// Fields that no key holds as it is.
    pub config: Map<String, Value>,
    /// Fields of the scaling of rotary embedding, where there is one, that no key holds.
    pub scaling: Map<String, Value>,
    /// Usual keys that are no field of this class.
    pub without: Vec<&'static str>,
    /// JSON files beside the configuration: names within the directory, contents.
    pub files: Vec<(&'static str, Value)>,
    /// Fields that conversion takes from elsewhere than the configuration: from values of tensors, from
    /// another model.
    pub unwritten: Map<String, Value>,
    /// Tensors that are not made of those of the model as the family says.
    pub tensors: Vec<Tensor>,
    /// Tensors of the model that such stand for.
    pub replaced: Vec<String>,
}

impl Exported {
    /// A model whose tensors have the foreign names in `tables`.
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

    /// The model as another class than the first of its family.
    pub fn class(self, class: &'static str, model_type: &'static str) -> Self {
        Self { class, model_type, ..self }
    }

    /// Foreign names that count before all others so far.
    pub fn first<'p>(mut self, patterns: impl IntoIterator<Item = &'p str>) -> Self {
        self.patterns.splice(0..0, patterns.into_iter().map(str::to_owned));
        self
    }

    /// Takes the foreign names of a table away.
    pub fn without_names(mut self, table: Table) -> Self {
        let unwanted: Vec<String> = foreign(table).collect();
        self.patterns.retain(|pattern| !unwanted.contains(pattern));
        self
    }

    /// Foreign names that are in no table.
    pub fn patterns<'p>(mut self, patterns: impl IntoIterator<Item = &'p str>) -> Self {
        self.patterns.extend(patterns.into_iter().map(str::to_owned));
        self
    }

    /// Keys with fields of their own.
    pub fn fields(mut self, fields: &[(&'static str, &'static str)]) -> Self {
        self.fields.extend(fields);
        self
    }

    /// Sets a field of the configuration.
    pub fn set(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.config.insert(field.to_owned(), value.into());
        self
    }

    /// Sets a field if the model tells its value.
    pub fn set_some(self, field: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(field, value),
            None => self,
        }
    }

    /// Puts in front of all foreign names so far what the tables leave out.
    pub fn prefixed(mut self, prefix: &str) -> Self {
        for pattern in self.patterns.iter_mut().filter(|pattern| !pattern.starts_with("lm_head.")) {
            pattern.insert_str(0, prefix);
        }
        self
    }

    /// Sets a field of the scaling of rotary embedding, if the model has one.
    pub fn scaling(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.scaling.insert(field.to_owned(), value.into());
        self
    }

    /// Leaves out the usual fields of these keys.
    pub fn without(mut self, keys: &[&'static str]) -> Self {
        self.without.extend(keys);
        self
    }

    /// Sets a field that is in no configuration.
    pub fn unwritten(mut self, field: &str, value: Value) -> Self {
        self.unwritten.insert(field.to_owned(), value);
        self
    }

    /// Adds a vector that keys tell of.
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

    /// Adds a tensor that stands for one of the model.
    pub fn in_place_of(mut self, ours: &str, tensor: Tensor) -> Self {
        self.replaced.push(ours.to_owned());
        self.tensors.push(tensor);
        self
    }

    /// Adds files beside the configuration.
    pub fn files(mut self, files: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        self.files.extend(files);
        self
    }
}

/// A number under the name of the model's architecture.
pub fn number(model: &Model, key: &str) -> Option<f64> {
    let value = Hyper::of(model.metadata()).ok()?.stated(key)?;
    value.to_f64().or_else(|| value.to_u64().map(|number| number as f64))
}

/// An unsigned number under the name of the model's architecture.
pub fn count(model: &Model, key: &str) -> Option<u64> {
    Hyper::of(model.metadata()).ok()?.stated(key)?.to_u64()
}

/// The width of a head.
pub fn head_dim(model: &Model) -> Option<u64> {
    Hyper::of(model.metadata()).ok()?.u64("attention.key_length").ok()
}

/// Heads of keys and values.
pub fn head_count_kv(model: &Model) -> Option<u64> {
    Hyper::of(model.metadata()).ok()?.u64("attention.head_count_kv").ok()
}

/// How many times the number of one key contains that of another.
pub fn ratio(model: &Model, key: &str, of: &str) -> Option<Value> {
    Some(whole(number(model, key)? / number(model, of)?))
}

/// A number as JSON, without a point if it is whole.
pub fn whole(number: f64) -> Value {
    let is_whole = number.fract() == 0.0 && (0.0..1e9).contains(&number);
    if is_whole { (number as u64).into() } else { number.into() }
}

/// Whether there is a tensor of this name.
pub fn has(model: &Model, tensor: &str) -> bool {
    model.tensors().iter().any(|found| *found.info.name == *tensor)
}

/// The same; and true of a model without a single tensor, whose keys do not say what it would have.
pub fn may_have(model: &Model, tensor: &str) -> bool {
    model.tensors().is_empty() || has(model, tensor)
}

/// The share of a head's dimensions that rotate.
pub fn rotated_share(model: &Model) -> Option<f64> {
    let rotated = number(model, key::ROPE_DIMENSION_COUNT)?;
    let head_dim = head_dim(model).filter(|&dim| dim != 0)? as f64;
    // Programs round down what they compute from it.
    let leads_back = |share| (rotated..rotated + 1e-6).contains(&(share * head_dim));
    Some(shortest(rotated / head_dim, leads_back))
}

/// The number of the fewest digits near `x` that leads back to what `x` was computed from: the one
/// that a person wrote. `x` itself if no number does.
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
