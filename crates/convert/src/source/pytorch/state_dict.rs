//! From the objects of a pickle to named tensors.

use std::sync::Arc;

use gguf::Source;

use super::pickle::{Objects, Tensor, Value};
use super::{Fault, Storages};
use crate::source::raw::Raw;
use crate::source::rows::{BandCache, Computed};
use crate::source::strided::Strided;

/// Under what a training script may keep the state dict.
const WRAPPERS: [&str; 5] = ["state_dict", "model_state_dict", "model", "module", "params"];

/// How deep wrappers may be nested.
const MAX_DEPTH: usize = 3;

/// The tensors of the state dict that `root` is or contains, in its order.
pub(super) fn tensors(
    objects: &Objects,
    root: Value,
    storages: &Storages,
    source: &Arc<dyn Source>,
    file: usize,
) -> Result<Vec<Raw>, Fault> {
    let mut dict = root;
    for _ in 0..=MAX_DEPTH {
        let pairs = objects.dict(dict).unwrap_or_default();
        let named: Vec<_> = pairs
            .iter()
            .filter_map(|(key, value)| Some((objects.text(*key)?, objects.tensor(*value)?)))
            .collect();
        if !named.is_empty() {
            let place = Place { storages, source, file, cache: Arc::default() };
            return named.into_iter().map(|(name, tensor)| place.raw(name, tensor)).collect();
        }
        let inner = WRAPPERS.iter().find_map(|name| objects.get(dict, name));
        let Some(inner) = inner else { break };
        dict = inner;
    }
    Err(Fault::Unsupported(
        "holds no dict of named tensors".to_owned(),
        "save the state dict with torch.save and convert that",
    ))
}

struct Place<'p> {
    storages: &'p Storages,
    source: &'p Arc<dyn Source>,
    file: usize,
    cache: Arc<BandCache>,
}

impl Place<'_> {
    fn raw(&self, name: &str, tensor: &Tensor) -> Result<Raw, Fault> {
        let storage = &tensor.storage;
        let beyond = || {
            let key = &storage.key;
            Fault::Damaged(format!("has a tensor `{name}` that does not fit its storage `{key}`"))
        };
        let (start, len) = *self.storages.get(&storage.key).ok_or_else(beyond)?;
        let width = tensor.dtype.bytes();
        let first = storage.start.checked_mul(storage.dtype.bytes()).filter(|at| *at <= len);
        let first = first.ok_or_else(beyond)?;
        let whole = Raw {
            name: name.to_owned(),
            shape: vec![(len - first) / width],
            dtype: tensor.dtype,
            file: self.file,
            source: self.source.clone(),
            offset: start + first,
        };
        let shape: Vec<u64> = tensor.dims.iter().map(|(len, _)| *len).collect();
        let elements = shape.iter().try_fold(1u64, |product, len| product.checked_mul(*len));
        // A view may repeat elements: nobody saves weights so, but a small file could ask for any
        // size of output.
        let elements = elements.filter(|elements| *elements <= whole.elements());
        if elements.ok_or_else(beyond)? == 0 {
            return Ok(Raw { shape, ..whole });
        }
        let offset = whole.offset + tensor.offset.saturating_mul(width).min(len);
        let view =
            Strided::new(whole.clone(), tensor.offset, tensor.dims.clone()).ok_or_else(beyond)?;
        if view.is_contiguous() {
            return Ok(Raw { shape, offset, ..whole });
        }
        Ok(Raw { shape, source: Computed::source(Box::new(view), &self.cache), offset: 0, ..whole })
    }
}
