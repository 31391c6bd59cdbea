//! Hyper-parameters of one model: typed by the table of keys, with what holds where one is absent.

use crate::schema::expression::{Scope, evaluate};
use crate::schema::key_schema::{Absent, Arity, KeySchema};
use crate::schema::{self, Architecture};
use gguf::Finding;
use gguf::Metadata;
use gguf::Value;

/// The hyper-parameters in a model's metadata, by their names without the architecture's.
///
/// ```
/// use gguf::Metadata;
/// use gguf::schema::Hyper;
/// let mut metadata = Metadata::new();
/// metadata.set("general.architecture", "llama");
/// metadata.set("llama.attention.head_count", 32u32);
/// let hyper = Hyper::of(&metadata).unwrap();
/// assert_eq!(hyper.u64("attention.head_count_kv").unwrap(), 32);
/// assert_eq!(hyper.f32("rope.freq_base").unwrap(), 10000.0);
/// assert_eq!(hyper.u64("block_count").unwrap_err().code, "key-missing");
/// ```
#[derive(Clone, Debug)]
pub struct Hyper<'m> {
    metadata: &'m Metadata,
    prefix: Box<str>,
    architecture: Option<&'static Architecture>,
    scope: Scope,
}

impl<'m> Hyper<'m> {
    /// The hyper-parameters of the architecture that the metadata name.
    ///
    /// # Errors
    /// `key-missing` if they name none.
    pub fn of(metadata: &'m Metadata) -> Result<Self, Finding> {
        match metadata.architecture() {
            Some(name) => Ok(Self::new(metadata, name)),
            None => Err(Finding::error("key-missing", "the model has no architecture")
                .key("general.architecture")
                .help("loaders reject the model; set general.architecture")),
        }
    }

    /// The hyper-parameters whose keys begin with the name of an architecture.
    pub fn new(metadata: &'m Metadata, architecture: &str) -> Self {
        Self {
            metadata,
            prefix: architecture.into(),
            architecture: schema::architecture(architecture),
            scope: Scope::new(metadata, architecture),
        }
    }

    /// The value that the file has, whatever its type.
    pub fn stated(&self, name: &str) -> Option<&'m Value> {
        self.metadata.get(&self.key(name))
    }

    /// A whole number; of one for each layer the first.
    ///
    /// # Errors
    /// A finding with the key: `key-missing` if the file does not have it and needs it, `key-type`
    /// or `key-value` if it holds something else.
    pub fn u64(&self, name: &str) -> Result<u64, Finding> {
        self.whole(name, None)
    }

    /// The same, in a layer counted from 0.
    ///
    /// # Errors
    /// As [`Hyper::u64`], and `key-value` if there is none for the layer.
    pub fn u64_in(&self, name: &str, layer: u64) -> Result<u64, Finding> {
        self.whole(name, Some(layer))
    }

    /// A number; of one for each layer the first.
    ///
    /// # Errors
    /// As [`Hyper::u64`].
    pub fn f32(&self, name: &str) -> Result<f32, Finding> {
        match (self.one(name, None)?, self.absent(name)) {
            (Some(value), _) => {
                let number = value.to_f64().ok_or_else(|| self.wrong_type(name, &value))?;
                Ok(number as f32)
            }
            (None, Absent::Number(number)) => Ok(number),
            (None, _) => Err(self.missing(name)),
        }
    }

    /// A truth value; of one for each layer the first.
    ///
    /// # Errors
    /// As [`Hyper::u64`].
    pub fn bool(&self, name: &str) -> Result<bool, Finding> {
        match (self.one(name, None)?, self.absent(name)) {
            (Some(value), _) => value.to_bool().ok_or_else(|| self.wrong_type(name, &value)),
            (None, Absent::Flag(flag)) => Ok(flag),
            (None, _) => Err(self.missing(name)),
        }
    }

    /// A word.
    ///
    /// # Errors
    /// As [`Hyper::u64`].
    pub fn str(&self, name: &str) -> Result<&'m str, Finding> {
        match (self.stated(name), self.absent(name)) {
            (Some(value), _) => value.as_str().ok_or_else(|| self.wrong_type(name, value)),
            (None, Absent::Text(text)) => Ok(text),
            (None, _) => Err(self.missing(name)),
        }
    }

    /// Sets a hyper-parameter of an architecture.
    ///
    /// # Errors
    /// A finding with the key: `key-unknown` if the table does not have it, `key-type` or
    /// `key-value` if it does not hold such a value. The metadata are then as they were.
    pub fn set(
        metadata: &mut Metadata,
        architecture: &str,
        name: &str,
        value: impl Into<Value>,
    ) -> Result<(), Finding> {
        let (key, value) = (format!("{architecture}.{name}"), value.into());
        let Some(standard) = schema::key(&key) else {
            return Err(Finding::error("key-unknown", "is no hyper-parameter").key(key));
        };
        if let Some(mismatch) = standard.value.mismatch(&value) {
            return Err(Finding::error("key-type", mismatch).key(key));
        }
        if let Some(wrong) = standard.value.refuses(&value) {
            return Err(Finding::error("key-value", wrong).key(key));
        }
        metadata.set(key, value);
        Ok(())
    }

    /// That the model lacks a key which it needs.
    pub fn missing(&self, name: &str) -> Finding {
        Finding::error("key-missing", format!("{} needs this key", self.prefix))
            .key(self.key(name))
            .help("loaders reject the model without it; convert it again or set the key")
    }

    fn whole(&self, name: &str, layer: Option<u64>) -> Result<u64, Finding> {
        match (self.one(name, layer)?, self.absent(name)) {
            (Some(value), _) => value.to_u64().ok_or_else(|| self.wrong_type(name, &value)),
            (None, Absent::Size(formula)) => {
                evaluate(formula, &self.scope, layer).ok_or_else(|| self.missing(name))
            }
            (None, _) => Err(self.missing(name)),
        }
    }

    /// The value in a file, of a layer if there is one for each; `None` if the key is absent.
    fn one(&self, name: &str, layer: Option<u64>) -> Result<Option<Value>, Finding> {
        let Some(stated) = self.stated(name) else { return Ok(None) };
        let per_layer = self.schema(name).is_some_and(|key| key.value.arity == Arity::PerLayer);
        let Some(array) = stated.as_array().filter(|_| per_layer) else {
            return Ok(Some(stated.clone()));
        };
        let layer = layer.unwrap_or(0);
        let value = usize::try_from(layer).ok().and_then(|layer| array.iter().nth(layer));
        value.map(Some).ok_or_else(|| {
            let message = format!("has {} elements, and none for layer {layer}", array.len());
            Finding::error("key-value", message).key(self.key(name))
        })
    }

    /// What holds where the file does not have the key.
    fn absent(&self, name: &str) -> Absent {
        let own = self.architecture.into_iter().flat_map(|known| known.defaults);
        let own = own.filter(|(key, _)| *key == name).map(|(_, absent)| *absent).next();
        own.or(self.schema(name).map(|key| key.absent)).unwrap_or(Absent::Nothing)
    }

    fn wrong_type(&self, name: &str, value: &Value) -> Finding {
        let mismatch = self.schema(name).and_then(|key| key.value.mismatch(value));
        let message = mismatch.unwrap_or_else(|| "is of another type than asked for".to_owned());
        Finding::error("key-type", message)
            .key(self.key(name))
            .help("loaders reject the file; set the key again with the right type")
    }

    fn schema(&self, name: &str) -> Option<&'static KeySchema> {
        schema::key(&self.key(name))
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::Array;

    fn model() -> Metadata {
        let mut metadata = Metadata::new();
        metadata.set("gemma2.embedding_length", 64u64);
        metadata.set("gemma2.attention.head_count", Array::from(&[4u32, 8][..]));
        metadata.set("gemma2.attention.layer_norm_rms_epsilon", 1e-6f32);
        metadata.set("gemma2.rope.scaling.type", 7u32);
        metadata
    }

    #[test]
    fn what_is_absent_has_a_value_or_is_missing() {
        let metadata = model();
        let hyper = Hyper::new(&metadata, "gemma2");
        assert_eq!(hyper.u64("attention.key_length"), Ok(16));
        assert_eq!(hyper.u64_in("attention.head_count_kv", 1), Ok(8));
        assert_eq!(hyper.f32("attention.layer_norm_rms_epsilon"), Ok(1e-6));
        assert_eq!(hyper.f32("attn_logit_softcapping"), Ok(50.0), "of this architecture");
        assert_eq!(hyper.bool("attention.causal"), Ok(true));
        let missing = Hyper::new(&metadata, "llama").u64("attention.sliding_window").unwrap_err();
        assert_eq!(
            (missing.code, missing.key.as_deref()),
            ("key-missing", Some("llama.attention.sliding_window"))
        );
    }

    #[test]
    fn other_types_are_findings() {
        let metadata = model();
        let hyper = Hyper::new(&metadata, "gemma2");
        let finding = hyper.str("rope.scaling.type").unwrap_err();
        assert_eq!((finding.code, &*finding.message), ("key-type", "is UINT32 instead of STRING"));
        let finding = hyper.u64_in("attention.head_count", 2).unwrap_err();
        assert_eq!(&*finding.message, "has 2 elements, and none for layer 2");
        let mut metadata = metadata;
        let set = |metadata: &mut Metadata, name: &str, value: Value| {
            Hyper::set(metadata, "gemma2", name, value).map_err(|finding| finding.code)
        };
        assert_eq!(set(&mut metadata, "block_count", 2u32.into()), Ok(()));
        assert_eq!(set(&mut metadata, "block_count", "2".into()), Err("key-type"));
        assert_eq!(set(&mut metadata, "blok_count", 2u32.into()), Err("key-unknown"));
        assert_eq!(set(&mut metadata, "rope.freq_base", 0.0f32.into()), Err("key-value"));
        assert_eq!(metadata.u64("gemma2.block_count"), Some(2));
    }
}
