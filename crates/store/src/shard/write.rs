//! Header and tensor data of a file, as they are stored in others.

use std::path::Path;

use gguf::{Error, Header, write_header};

use crate::model::ModelTensor;
use crate::output::{Complete, Layout, Output, Overwrite};
use crate::progress::Progress;

/// Bytes read at a time.
pub(super) const CHUNK: u64 = 4 << 20;

/// Writes an output with a header and the data of its tensors, which `tensors` gives in the same
/// order; it lacks its name then. `progress` is told the bytes just written, and may end the work.
pub(super) fn write(
    target: &Path,
    header: &Header,
    tensors: &[ModelTensor],
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<Complete, Error> {
    let start = write_header(header)?;
    let data_start = start.len() as u64;
    let output = Output::create(target, Layout::new(header, start.len())?, overwrite)?;
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
    output.close(progress)
}
