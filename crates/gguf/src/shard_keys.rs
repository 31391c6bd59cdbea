//! Keys of shards: names and types as in llama.cpp's `tools/gguf-split`, and one own key.

use crate::metadata::Metadata;

/// Index of the shard, UINT16, from 0.
pub const NO: &str = "split.no";
/// Number of shards, UINT16.
pub const COUNT: &str = "split.count";
/// Total number of tensors in all shards, INT32.
pub const TENSORS_COUNT: &str = "split.tensors.count";
/// The three keys of llama.cpp.
pub(crate) const KEYS: [&str; 3] = [NO, COUNT, TENSORS_COUNT];
/// Fingerprint of a shard, STRING: a digest of everything that determines the bytes of the whole
/// model.
///
/// Shards that separate runs produce have it, and those of `gguf split`, but not those of llama.cpp's tool. Merging
/// compares it ([`check_shards`](crate::check_shards)) and removes it.
pub const PART_FINGERPRINT: &str = "gguf_kit.part.fingerprint";

/// Appends the keys of a shard, in llama.cpp's order.
///
/// `no` counts from 0; `tensors` is the total of all shards.
pub fn push(metadata: &mut Metadata, no: u16, count: u16, tensors: usize) {
    metadata.push(NO, no);
    // The reader's limit on entries is far lower.
    metadata.push(TENSORS_COUNT, i32::try_from(tensors).unwrap_or(i32::MAX));
    metadata.push(COUNT, count);
}

/// Removes all keys that describe only their shard.
pub fn remove(metadata: &mut Metadata) {
    for key in KEYS.into_iter().chain([PART_FINGERPRINT]) {
        metadata.remove(key);
    }
}
