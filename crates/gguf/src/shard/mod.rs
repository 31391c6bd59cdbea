//! Models in several files.
//!
//! The files of a set are named `PREFIX-00001-of-00003.gguf` and so on. Each says in three keys
//! which part of what it is; the first one has all other keys too. The keys, the names and what
//! goes where are those of the official tool (`tools/gguf-split` and `llama-model-loader.cpp` of
//! llama.cpp).

mod merge;
mod set;
mod split;

pub use merge::{MergeOptions, delete_merged, merge};
pub use set::ShardSet;
pub use split::{PlannedShard, SplitLimit, SplitOptions, SplitPlan};

use std::ops::ControlFlow;

use crate::error::Error;
use crate::finding::Finding;
use crate::header::Header;
use crate::metadata::Metadata;
use crate::model::ModelTensor;
use crate::output::Output;
use crate::write::write_header;

/// Which shard a file is, UINT16, from 0.
pub(crate) const NO: &str = "split.no";
/// How many shards there are, UINT16.
pub(crate) const COUNT: &str = "split.count";
/// Tensors of all shards together, INT32.
pub(crate) const TENSORS_COUNT: &str = "split.tensors.count";
/// All three.
pub(crate) const KEYS: [&str; 3] = [NO, COUNT, TENSORS_COUNT];
/// Of which work a shard is a part, STRING: a digest of all that the bytes of the whole depend on.
///
/// Shards that are made apart from one another, in different runs, all have it. Whoever puts them
/// together compares it ([`check_shards`](crate::check_shards)) and drops it. Shards that were split
/// off a file do not have it.
pub const PART_FINGERPRINT: &str = "gguf_kit.part.fingerprint";

/// Appends the keys that say which shard of how many a file is, in the official tool's order.
///
/// `no` counts from 0; `tensors` are those of all shards together.
pub fn push_shard_keys(metadata: &mut Metadata, no: u16, count: u16, tensors: usize) {
    metadata.push(NO, no);
    // The reader's limit on entries is far below.
    metadata.push(TENSORS_COUNT, i32::try_from(tensors).unwrap_or(i32::MAX));
    metadata.push(COUNT, count);
}

/// Removes all keys that only speak of the shard they are in.
pub(crate) fn remove_keys(metadata: &mut Metadata) {
    for key in KEYS.into_iter().chain([PART_FINGERPRINT]) {
        metadata.remove(key);
    }
}

/// Bytes read at a time.
const CHUNK: u64 = 4 << 20;

/// Bytes of a file with this header, data and final padding included.
fn file_len(header: &Header, header_bytes: u64) -> Result<u64, Error> {
    let data_len = header.alignment().align_up(header.data_len());
    data_len.and_then(|data| header_bytes.checked_add(data)).ok_or_else(|| {
        Error::File(Box::new(Finding::error("file-too-long", "the size does not fit 64 bits")))
    })
}

/// Fills an output with a header and the data of its tensors, which `tensors` gives in the same
/// order. `progress` is told the bytes just written, and may end the work.
fn fill(
    output: &Output,
    header: &Header,
    tensors: &[ModelTensor],
    progress: &dyn Fn(u64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let start = write_header(header)?;
    let data_start = start.len() as u64;
    output.set_len(file_len(header, data_start)?)?;
    output.write_at(&start, 0)?;
    let mut buffer = Vec::new();
    for (info, tensor) in header.tensors().iter().zip(tensors) {
        // Offsets were laid out, so the size is known.
        let (mut done, len) = (0, info.byte_len().unwrap_or(0));
        while done < len {
            let n = (len - done).min(CHUNK);
            buffer.resize(n as usize, 0);
            tensor.read_stored_at(&mut buffer, done)?;
            output.write_at(&buffer, data_start + info.offset + done)?;
            if progress(n).is_break() {
                return Err(Error::Interrupted);
            }
            done += n;
        }
    }
    Ok(())
}
