//! File format before PyTorch 1.6: pickles of a magic number, a version, system information, the
//! state dict and the list of storage keys; then each storage, preceded by its number of elements.

use std::collections::HashMap;
use std::sync::Arc;

use gguf_store::Source;

use super::input::Input;
use super::objects::{Objects, Value};
use super::{Fault, Storages, pickle};

/// `MAGIC_NUMBER` in `torch/serialization.py`.
const MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;

/// `PROTOCOL_VERSION` in `torch/serialization.py`.
const VERSION: i64 = 1001;

/// Whether a file begins with a pickle. As the length of a safetensors header, these bytes would
/// exceed its maximum.
pub(super) fn begins_with(start: &[u8; 8]) -> bool {
    matches!(start, [0x80, 2..=5, 0x8a | 0x95, 1..=255, ..])
}

/// Returns all objects, the root, and the ranges of the storages.
pub(super) fn load(source: Arc<dyn Source>) -> Result<(Objects, Value, Storages), Fault> {
    let mut objects = Objects::default();
    let mut input = Input::new(source.clone(), 0, source.byte_len());
    let magic = pickle::load(&mut input, &mut objects)?;
    if objects.integer(magic) != Some(MAGIC) {
        let what = "is a pickle, but not of a PyTorch checkpoint".to_owned();
        return Err(Fault::Unsupported(what, "name a file written by torch.save"));
    }
    if pickle::load(&mut input, &mut objects)? != Value::Int(VERSION) {
        let what = "has an unknown version of the PyTorch format".to_owned();
        return Err(Fault::Unsupported(what, "load and save it with a current PyTorch"));
    }
    let machine = pickle::load(&mut input, &mut objects)?;
    if objects.get(machine, "little_endian") == Some(Value::Bool(false)) {
        let what = "holds tensors in big-endian byte order".to_owned();
        return Err(Fault::Unsupported(what, "save it again on a little-endian machine"));
    }
    let root = pickle::load(&mut input, &mut objects)?;
    let keys = pickle::load(&mut input, &mut objects)?;
    let storages = storages(&objects, keys, &mut input, &*source)?;
    Ok((objects, root, storages))
}

fn storages(
    objects: &Objects,
    keys: Value,
    input: &mut Input,
    source: &dyn Source,
) -> Result<Storages, Fault> {
    let damaged = |what: &str| Fault::Damaged(format!("{what} its storages"));
    let keys = objects.items(keys).ok_or_else(|| damaged("has no list of"))?;
    let widths: HashMap<_, _> =
        objects.storages().map(|storage| (&*storage.key, storage.dtype.bytes())).collect();
    let mut at = input.position();
    let mut found = Storages::new();
    for key in keys {
        let key =
            objects.text(*key).ok_or_else(|| damaged("has a key that is not a string among"))?;
        let width = widths.get(&**key).ok_or_else(|| damaged("has an unused key among"))?;
        let mut count = [0; 8];
        let start = at.checked_add(8).filter(|start| *start <= source.byte_len());
        let start = start.ok_or_else(|| damaged("ends within"))?;
        source.read_at(&mut count, at)?;
        let len = u64::from_le_bytes(count).checked_mul(*width);
        let end = len.and_then(|len| start.checked_add(len));
        let end =
            end.filter(|end| *end <= source.byte_len()).ok_or_else(|| damaged("ends within"))?;
        if found.insert(key.clone(), (start, end - start)).is_some() {
            return Err(damaged("has a duplicate key among"));
        }
        at = end;
    }
    Ok(found)
}
