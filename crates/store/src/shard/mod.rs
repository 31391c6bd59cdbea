//! Models in several files.
//!
//! The files of a set are named `PREFIX-00001-of-00003.gguf` and so on. Each says in three keys
//! which part of what it is; the first one has all other keys too. The keys, the names and what
//! goes where are those of llama.cpp's tool (`tools/gguf-split` and `llama-model-loader.cpp` of
//! llama.cpp).

mod merge;
mod set;
mod split;

use gguf::{Error, Finding, Header, write_header};
pub use merge::{MergeOptions, delete_merged, merge};
pub use set::ShardSet;
pub use split::{PlannedShard, SplitLimit, SplitOptions, SplitPlan};

use crate::model::ModelTensor;
use crate::output::AtomicFile;
use crate::progress::Progress;

/// Bytes read at a time.
const CHUNK: u64 = 4 << 20;

/// Bytes of a file with this header, data and final padding included.
fn file_len(header: &Header, header_bytes: u64) -> Result<u64, Error> {
    let data_len = header.alignment().align_up(header.data_len());
    data_len.and_then(|data| header_bytes.checked_add(data)).ok_or_else(|| {
        Error::from(Finding::error("file-too-long", "the size does not fit 64 bits"))
    })
}

/// Fills an output with a header and the data of its tensors, which `tensors` gives in the same
/// order. `progress` is told the bytes just written, and may end the work.
fn fill(
    output: &AtomicFile,
    header: &Header,
    tensors: &[ModelTensor],
    progress: &dyn Progress,
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
            progress.step(n)?;
            done += n;
        }
    }
    Ok(())
}
