//! Converts the objects of a pickle to named tensors.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use gguf_store::Source;

use super::objects::{Objects, Tensor, Value};
use super::{Fault, Storages};
use crate::raw::Raw;
use crate::rows::{ComputedSource, TileCache};
use crate::strided::Strided;

/// Keys under which training scripts store the state dict.
const WRAPPERS: [&str; 5] = ["state_dict", "model_state_dict", "model", "module", "params"];

/// Maximum nesting of wrappers.
const MAX_DEPTH: usize = 3;

/// Maximum size of all tensors, as a multiple of the file length: models that share one layer have
/// some tens.
const MAX_SHARED: u64 = 64;

/// Returns the tensors of the state dict that `root` is or contains, in its order.
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
            check_names(&named)?;
            objects.count_copied(named.iter().map(|(_, tensor)| tensor.dims.len()).sum())?;
            let reader = StorageReader { storages, source, file, cache: Arc::default() };
            let raws = named.into_iter().map(|(name, tensor)| reader.raw(name, tensor));
            let raws = raws.collect::<Result<Vec<_>, _>>()?;
            check_size(&raws, source.byte_len())?;
            return Ok(raws);
        }
        let inner = WRAPPERS.iter().find_map(|name| objects.get(dict, name));
        let Some(inner) = inner else { break };
        dict = inner;
    }
    Err(Fault::Unsupported(
        "holds no dict of named tensors".to_owned(),
        "save the state dict with torch.save and convert that file",
    ))
}

/// Checks that names are unique, which bounds their total length by that of the pickle.
fn check_names(named: &[(&Rc<str>, &Tensor)]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    match named.iter().find(|(name, _)| !seen.insert(&**name)) {
        None => Ok(()),
        Some((name, _)) => Err(Fault::Damaged(format!("has two tensors `{name}`"))),
    }
}

/// Bounds the total size. Tensors share storages if a model uses a matrix in several places, but a
/// small malicious file must not cause an output of any size.
fn check_size(raws: &[Raw], file_len: u64) -> Result<(), Fault> {
    let bytes = raws.iter().map(|raw| raw.elements().saturating_mul(raw.dtype.bytes()));
    let total = bytes.fold(0u64, u64::saturating_add);
    if total > file_len.saturating_mul(MAX_SHARED) {
        let what = format!(
            "has tensors of {total} bytes in a file of {file_len}: they share their storages more \
                         than {MAX_SHARED} times",
        );
        return Err(Fault::Damaged(what));
    }
    Ok(())
}

struct StorageReader<'p> {
    storages: &'p Storages,
    source: &'p Arc<dyn Source>,
    file: usize,
    cache: Arc<TileCache>,
}

impl StorageReader<'_> {
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
        // A view may repeat elements. Real checkpoints do not, but a small malicious file could
        // cause an output of any size.
        let elements = elements.filter(|elements| *elements <= whole.elements());
        if elements.ok_or_else(beyond)? == 0 {
            return Ok(Raw { shape, ..whole });
        }
        let offset = whole.offset + tensor.offset.saturating_mul(width).min(len);
        let view =
            Strided::new(whole.clone(), tensor.offset, tensor.dims.to_vec()).ok_or_else(beyond)?;
        if view.is_contiguous() {
            return Ok(Raw { shape, offset, ..whole });
        }
        Ok(Raw {
            shape,
            source: ComputedSource::source(Box::new(view), &self.cache),
            offset: 0,
            ..whole
        })
    }
}
