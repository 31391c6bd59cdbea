//! Reads the header of a remote file with few requests and few bytes.

use gguf::{Bytes, Error, HeaderStep, Limits, header_step};

use crate::source::Source;

/// Reads from the start of a source until the header is complete, and returns its bytes up to the
/// start of the data section. [`header_step`] says how much each request reads.
///
/// An invalid header ends the reading without an error.
/// [`Gguf::read_header`](gguf::Gguf::read_header) or [`check_header`](gguf::check_header) then
/// reports the fault from the returned bytes and the length of the source.
///
/// # Errors
/// Errors of the source; [`Error::File`] if the header needs more than [`Limits::header_bytes`].
pub fn fetch_header(source: &dyn Source, limits: Limits) -> Result<Bytes, Error> {
    let file_len = source.byte_len();
    let mut window = Bytes::new();
    loop {
        let target = match header_step(&window, file_len, limits)? {
            HeaderStep::Done(end) => return Ok(window.slice(..end as usize)),
            HeaderStep::Read(target) => target,
        };
        let present = window.len();
        // The bytes have one owner, so this does not copy.
        let mut bytes = Vec::from(window);
        // At most `header_bytes`, the memory limit that the caller sets.
        bytes.resize(usize::try_from(target).unwrap_or(usize::MAX), 0);
        source.read_at(&mut bytes[present..], present as u64)?;
        window = bytes.into();
    }
}
