//! Header and tensor data of a file, as they are stored in others.

use gguf::{Error, Header, write_header};

use crate::model::ModelTensor;
use crate::output::AtomicFile;
use crate::progress::Progress;

/// Bytes read at a time.
pub(super) const CHUNK: u64 = 4 << 20;

/// Fills an output with a header and the data of its tensors, which `tensors` gives in the same
/// order. `progress` is told the bytes just written, and may end the work.
pub(super) fn fill(
    output: &AtomicFile,
    header: &Header,
    tensors: &[ModelTensor],
    progress: &dyn Progress,
) -> Result<(), Error> {
    let start = write_header(header)?;
    let data_start = start.len() as u64;
    output.set_len(header.file_len(start.len())?)?;
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
