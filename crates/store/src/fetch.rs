//! Reads the header of a remote file with few requests and few bytes.

use gguf::units::distinct_sizes;
use gguf::{Bytes, Error, Finding, HeaderExtent, Limits, header_extent};

use crate::source::Source;

/// Number of bytes that [`fetch_header`] reads first: enough for a header without a vocabulary.
pub const FIRST_READ: u64 = 256 << 10;

/// Minimum size of each further read: about one round trip at 100 Mbit/s.
const MIN_STEP: u64 = 1 << 20;

/// Reads from the start of a source until the header is complete, and returns its bytes up to the
/// start of the data section.
///
/// Each read requests at least the bytes that the parser knows to be missing and half of those
/// already present. A header of `n` bytes therefore takes about `log(n)` reads and at most `n / 2`
/// bytes, or one MiB, beyond its end. A length that reaches past the end of the source is not
/// fetched.
///
/// An invalid header ends the reading without an error.
/// [`Gguf::read_header`](gguf::Gguf::read_header) or [`check_header`](gguf::check_header) then
/// reports the fault from the returned bytes and the length of the source.
///
/// # Errors
/// Errors of the source; [`Error::File`] if the header needs more than [`Limits::header_bytes`].
pub fn fetch_header(source: &dyn Source, limits: Limits) -> Result<Bytes, Error> {
    let file_len = source.byte_len();
    let bound = file_len.min(limits.header_bytes);
    let mut bytes = Vec::new();
    let mut target = FIRST_READ.min(bound);
    loop {
        let present = bytes.len();
        // At most `header_bytes`, the memory limit that the caller sets.
        bytes.resize(usize::try_from(target).unwrap_or(usize::MAX), 0);
        source.read_at(&mut bytes[present..], present as u64)?;
        let window = Bytes::from(bytes);
        let needed = match header_extent(&window, file_len, limits) {
            HeaderExtent::Complete(end) => {
                let end = end.min(window.len() as u64);
                return Ok(window.slice(..end as usize));
            }
            HeaderExtent::Faulty => return Ok(window),
            HeaderExtent::Short(needed) => needed,
        };
        // The bytes have one owner, so this does not copy.
        bytes = window.into();
        if needed > bound {
            let [needed, limit] = distinct_sizes(needed, limits.header_bytes);
            let message = format!("the header takes at least {needed}; the limit is {limit}");
            let finding = Finding::error("limit-header", message)
                .at(bytes.len() as u64)
                .help("raise the limit if you trust the file");
            return Err(finding.into());
        }
        target = target.saturating_add(MIN_STEP.max(target / 2)).max(needed).min(bound);
    }
}
