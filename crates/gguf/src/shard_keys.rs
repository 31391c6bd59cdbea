//! The keys by which the files of one model know each other: names and types as in `tools/gguf-split`
//! of llama.cpp, and one of our own.

use crate::metadata::Metadata;

/// Which shard a file is, UINT16, from 0.
pub const NO: &str = "split.no";
/// How many shards there are, UINT16.
pub const COUNT: &str = "split.count";
/// Tensors of all shards together, INT32.
pub const TENSORS_COUNT: &str = "split.tensors.count";
/// All three.
pub(crate) const KEYS: [&str; 3] = [NO, COUNT, TENSORS_COUNT];
/// Of which work a shard is a part, STRING: a digest of all that the bytes of the whole depend on.
///
/// Shards that are made apart from one another, in different runs, all have it. Whoever puts them
/// together compares it ([`check_shards`](crate::check_shards)) and drops it. Shards that were split
/// off a file do not have it.
pub const PART_FINGERPRINT: &str = "gguf_kit.part.fingerprint";

/// Appends the keys that say which shard of how many a file is, in llama.cpp's order.
///
/// `no` counts from 0; `tensors` are those of all shards together.
pub fn push(metadata: &mut Metadata, no: u16, count: u16, tensors: usize) {
    metadata.push(NO, no);
    // The reader's limit on entries is far below.
    metadata.push(TENSORS_COUNT, i32::try_from(tensors).unwrap_or(i32::MAX));
    metadata.push(COUNT, count);
}

/// Removes all keys that only speak of the shard they are in.
pub fn remove(metadata: &mut Metadata) {
    for key in KEYS.into_iter().chain([PART_FINGERPRINT]) {
        metadata.remove(key);
    }
}
