//! Typed hyper-parameters of a model, with the defaults of the key table.

use gguf::{Finding, Metadata, Value};

use crate::schema;
use crate::schema::Architecture;
use crate::schema::expression::{Scope, evaluate};
use crate::schema::key_schema::{Arity, DefaultValue, KeySchema};

/// Hyper-parameters in the metadata of a model, by key without the prefix of the architecture.
///
/// ```
/// use gguf::Metadata;
/// use gguf_models::schema::HyperParameters;
/// let mut metadata = Metadata::new();
/// metadata.set("general.architecture", "llama");
/// metadata.set("llama.attention.head_count", 32u32);
/// let hparams = HyperParameters::from_metadata(&metadata).unwrap();
/// assert_eq!(hparams.u64("attention.head_count_kv").unwrap(), 32);
/// assert_eq!(hparams.f32("rope.freq_base").unwrap(), 10000.0);
/// assert_eq!(hparams.u64("block_count").unwrap_err().code, "key-missing");
/// ```
#[derive(Clone, Debug)]
pub struct HyperParameters<'m> {
    metadata: &'m Metadata,
    prefix: Box<str>,
    architecture: Option<&'static Architecture>,
    scope: Scope,
}

impl<'m> HyperParameters<'m> {
    /// Returns the hyper-parameters of the architecture in `general.architecture`.
    ///
    /// # Errors
    /// `key-missing` if the metadata have no architecture.
    pub fn from_metadata(metadata: &'m Metadata) -> Result<Self, Finding> {
        match metadata.architecture() {
            Some(name) => Ok(Self::new(metadata, name)),
            None => Err(Finding::error("key-missing", "the metadata name no architecture")
                .key("general.architecture")
                .help("loaders reject the model; set general.architecture")),
        }
    }

    /// Returns the hyper-parameters whose keys have the prefix `architecture`.
    pub fn new(metadata: &'m Metadata, architecture: &str) -> Self {
        Self {
            metadata,
            prefix: architecture.into(),
            architecture: schema::architecture(architecture),
            scope: Scope::new(metadata, architecture),
        }
    }

    /// Returns the value in the file, of any type; `None` if the key is missing.
    pub fn value(&self, name: &str) -> Option<&'m Value> {
        self.metadata.get(&self.key(name))
    }

    /// Returns an integer; the value of the first layer if the key has one per layer.
    ///
    /// # Errors
    /// A finding with the key: `key-missing` if the key is missing and has no default, `key-type` or
    /// `key-value` if its value does not fit.
    pub fn u64(&self, name: &str) -> Result<u64, Finding> {
        self.integer(name, None)
    }

    /// Returns an integer of a layer, counted from 0.
    ///
    /// # Errors
    /// As [`HyperParameters::u64`], and `key-value` if the array has no element for the layer.
    pub fn u64_in_layer(&self, name: &str, layer: u64) -> Result<u64, Finding> {
        self.integer(name, Some(layer))
    }

    /// Returns a number; the value of the first layer if the key has one per layer.
    ///
    /// # Errors
    /// As [`HyperParameters::u64`].
    pub fn f32(&self, name: &str) -> Result<f32, Finding> {
        match (self.value_in_layer(name, None)?, self.default_value(name)) {
            (Some(value), _) => {
                let number = value.to_f64().ok_or_else(|| self.wrong_type(name, &value))?;
                Ok(number as f32)
            }
            (None, DefaultValue::Number(number)) => Ok(number),
            (None, _) => Err(self.missing(name)),
        }
    }

    /// Returns a boolean; the value of the first layer if the key has one per layer.
    ///
    /// # Errors
    /// As [`HyperParameters::u64`].
    pub fn bool(&self, name: &str) -> Result<bool, Finding> {
        match (self.value_in_layer(name, None)?, self.default_value(name)) {
            (Some(value), _) => value.to_bool().ok_or_else(|| self.wrong_type(name, &value)),
            (None, DefaultValue::Flag(flag)) => Ok(flag),
            (None, _) => Err(self.missing(name)),
        }
    }

    /// Returns a string.
    ///
    /// # Errors
    /// As [`HyperParameters::u64`].
    pub fn str(&self, name: &str) -> Result<&'m str, Finding> {
        match (self.value(name), self.default_value(name)) {
            (Some(value), _) => value.as_str().ok_or_else(|| self.wrong_type(name, value)),
            (None, DefaultValue::Text(text)) => Ok(text),
            (None, _) => Err(self.missing(name)),
        }
    }

    /// Sets a hyper-parameter of an architecture.
    ///
    /// # Errors
    /// A finding with the key: `key-unknown` if it is not a standard key, `key-type` or `key-value` if it
    /// cannot hold the value. The metadata are then unchanged.
    pub fn set(
        metadata: &mut Metadata,
        architecture: &str,
        name: &str,
        value: impl Into<Value>,
    ) -> Result<(), Finding> {
        let (key, value) = (format!("{architecture}.{name}"), value.into());
        let Some(standard) = schema::key(&key) else {
            return Err(Finding::error("key-unknown", "is not a standard key").key(key));
        };
        if let Some(mismatch) = standard.value.mismatch(&value) {
            return Err(Finding::error("key-type", mismatch).key(key));
        }
        if let Some(wrong) = standard.value.out_of_range(&value) {
            return Err(Finding::error("key-value", wrong).key(key));
        }
        metadata.set(key, value);
        Ok(())
    }

    /// Returns the finding for a missing key.
    pub fn missing(&self, name: &str) -> Finding {
        Finding::error("key-missing", format!("{} requires this key", self.prefix))
            .key(self.key(name))
            .help("loaders reject the model without it; convert it again or set the key")
    }

    fn integer(&self, name: &str, layer: Option<u64>) -> Result<u64, Finding> {
        match (self.value_in_layer(name, layer)?, self.default_value(name)) {
            (Some(value), _) => value.to_u64().ok_or_else(|| self.wrong_type(name, &value)),
            (None, DefaultValue::Size(formula)) => {
                evaluate(formula, &self.scope, layer).ok_or_else(|| self.missing(name))
            }
            (None, _) => Err(self.missing(name)),
        }
    }

    /// Returns the value in the file, of a layer if the key has one per layer; `None` if the key is
    /// missing.
    fn value_in_layer(&self, name: &str, layer: Option<u64>) -> Result<Option<Value>, Finding> {
        let Some(stated) = self.value(name) else { return Ok(None) };
        let per_layer = self.schema(name).is_some_and(|key| key.value.arity == Arity::PerLayer);
        let Some(array) = stated.as_array().filter(|_| per_layer) else {
            return Ok(Some(stated.clone()));
        };
        let layer = layer.unwrap_or(0);
        let value = usize::try_from(layer).ok().and_then(|layer| array.iter().nth(layer));
        value.map(Some).ok_or_else(|| {
            let message = format!("has {} elements; expected one for layer {layer}", array.len());
            Finding::error("key-value", message).key(self.key(name))
        })
    }

    /// Returns the default of a key.
    fn default_value(&self, name: &str) -> DefaultValue {
        let own = self.architecture.into_iter().flat_map(|known| known.defaults);
        let own = own.filter(|(key, _)| *key == name).map(|(_, default)| *default).next();
        own.or(self.schema(name).map(|key| key.default)).unwrap_or(DefaultValue::None)
    }

    fn wrong_type(&self, name: &str, value: &Value) -> Finding {
        let mismatch = self.schema(name).and_then(|key| key.value.mismatch(value));
        let message = mismatch.unwrap_or_else(|| "has the wrong type".to_owned());
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
    fn missing_keys_have_their_default_or_fail() {
        let metadata = model();
        let hparams = HyperParameters::new(&metadata, "gemma2");
        assert_eq!(hparams.u64("attention.key_length"), Ok(16));
        assert_eq!(hparams.u64_in_layer("attention.head_count_kv", 1), Ok(8));
        assert_eq!(hparams.f32("attention.layer_norm_rms_epsilon"), Ok(1e-6));
        assert_eq!(hparams.f32("attn_logit_softcapping"), Ok(50.0), "default of gemma2");
        assert_eq!(hparams.bool("attention.causal"), Ok(true));
        let missing =
            HyperParameters::new(&metadata, "llama").u64("attention.sliding_window").unwrap_err();
        assert_eq!(
            (missing.code, missing.key.as_deref()),
            ("key-missing", Some("llama.attention.sliding_window"))
        );
    }

    #[test]
    fn wrong_types_are_findings() {
        let metadata = model();
        let hparams = HyperParameters::new(&metadata, "gemma2");
        let finding = hparams.str("rope.scaling.type").unwrap_err();
        assert_eq!((finding.code, &*finding.message), ("key-type", "is UINT32 instead of STRING"));
        let finding = hparams.u64_in_layer("attention.head_count", 2).unwrap_err();
        assert_eq!(&*finding.message, "has 2 elements; expected one for layer 2");
        let mut metadata = metadata;
        let set = |metadata: &mut Metadata, name: &str, value: Value| {
            HyperParameters::set(metadata, "gemma2", name, value).map_err(|finding| finding.code)
        };
        assert_eq!(set(&mut metadata, "block_count", 2u32.into()), Ok(()));
        assert_eq!(set(&mut metadata, "block_count", "2".into()), Err("key-type"));
        assert_eq!(set(&mut metadata, "blok_count", 2u32.into()), Err("key-unknown"));
        assert_eq!(set(&mut metadata, "rope.freq_base", 0.0f32.into()), Err("key-value"));
        assert_eq!(metadata.u64("gemma2.block_count"), Some(2));
    }
}
