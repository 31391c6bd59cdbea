//! Removal of layers; the remaining layers are renumbered.

use std::collections::BTreeSet;

use gguf::{Error, Metadata, Value};
use gguf_pipeline::Job;

/// Removes the blocks `layers` from a job: their tensors, their elements in per-block arrays, and
/// their count in `block_count`.
///
/// # Errors
/// Returns an error if a block does not exist, or none would remain.
pub fn prune(job: &mut Job, layers: &BTreeSet<u64>) -> Result<(), Error> {
    if layers.is_empty() {
        return Ok(());
    }
    let architecture = job.metadata.architecture().unwrap_or_default().to_owned();
    let key = format!("{architecture}.block_count");
    let count = job.metadata.u64(&key).unwrap_or(0);
    if let Some(layer) = layers.iter().find(|&&layer| layer >= count) {
        let what = format!("there is no block {layer}: the model has {count}");
        return Err(Error::request("prune-blocks", what, "blocks are counted from 0"));
    }
    let left = count - layers.len() as u64;
    if left == 0 {
        let help = "prune fewer blocks";
        return Err(Error::request("prune-blocks", "no block would remain", help));
    }
    job.items.retain(|item| block_of(&item.tensor.name).is_none_or(|(n, _)| !layers.contains(&n)));
    for item in &mut job.items {
        if let Some((n, rest)) = block_of(&item.tensor.name) {
            let before = layers.range(..n).count() as u64;
            item.tensor.name = format!("blk.{}.{rest}", n - before);
        }
    }
    prune_arrays(&mut job.metadata, &format!("{architecture}."), count, layers);
    if let Ok(left) = u32::try_from(left) {
        job.metadata.set(key, left);
    }
    Ok(())
}

/// Splits a name that begins with `blk.N.` into `N` and the rest.
fn block_of(name: &str) -> Option<(u64, &str)> {
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

/// llama.cpp's tool leaves these arrays unchanged, and the result cannot be loaded.
fn prune_arrays(metadata: &mut Metadata, prefix: &str, count: u64, layers: &BTreeSet<u64>) {
    let pruned: Vec<_> = metadata
        .iter()
        .filter(|(key, _)| key.starts_with(prefix))
        .filter_map(|(key, value)| {
            let array = value.as_array().filter(|array| array.len() == count)?;
            Some((key.to_owned(), Value::Array(array.filtered(|i| !layers.contains(&i)))))
        })
        .collect();
    for (key, value) in pruned {
        metadata.set(key, value);
    }
}
