//! Writes a file with a header and tensor data from other files.

use std::path::Path;

use gguf::{Error, Header, write_header};

use crate::model::ModelTensor;
use crate::output::{ClosedOutput, Output, OutputLayout, Overwrite};
use crate::progress::Progress;

/// Bytes per read.
pub(super) const CHUNK: u64 = 4 << 20;

/// Writes an output with a header and the data of `tensors`, in the same order, and closes it
/// without making it visible. `progress` receives the number of bytes of each write and may cancel.
pub(super) fn write(
    target: &Path,
    header: &Header,
    tensors: &[ModelTensor],
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<ClosedOutput, Error> {
    let start = write_header(header)?;
    let data_start = start.len() as u64;
    let output = Output::create(target, OutputLayout::new(header, start.len())?, overwrite)?;
    output.write_at(&start, 0)?;
    let mut buffer = Vec::new();
    for (info, tensor) in header.tensors().iter().zip(tensors) {
        // The header is laid out, so the size is known.
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
    output.close(progress)
}
