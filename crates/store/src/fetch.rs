//! The header of a file that is far away: as few reads, and as few bytes, as it takes.

use gguf::units::bytes_apart;
use gguf::{Bytes, Error, Finding, HeaderExtent, Limits, header_extent};

use crate::source::Source;

/// How many bytes [`fetch_header`] reads first: enough for a header without a vocabulary.
pub const FIRST_WINDOW: u64 = 256 << 10;

/// Each further read takes at least this much: about what a connection of 100 Mbit/s carries
/// while one more request goes back and forth.
const LEAST_STEP: u64 = 1 << 20;

/// Reads from the start of a source until the header is complete, and returns its bytes, up to
/// the start of the data section.
///
/// Each read takes what the parser knows to be missing, and at least half as much again as is
/// there, so a header of `n` bytes costs about `log(n)` reads and no more than half its size, or
/// one MiB, beyond its end. A length that reaches past the end of the source is never fetched.
///
/// A faulty header ends the reading and is not an error here: the bytes are then those that
/// [`Gguf::read_header`](gguf::Gguf::read_header) or [`check_header`](gguf::check_header), told
/// the length of the source, need to say what is wrong.
///
/// # Errors
/// What the source fails with; [`Error::File`] if more than
/// [`Limits::header_bytes`] would be needed.
pub fn fetch_header(source: &dyn Source, limits: Limits) -> Result<Bytes, Error> {
    let file_len = source.byte_len();
    let bound = file_len.min(limits.header_bytes);
    let mut bytes = Vec::new();
    let mut target = FIRST_WINDOW.min(bound);
    loop {
        let present = bytes.len();
        // No more than `header_bytes`, which is memory that the caller grants.
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
        // Nobody else holds them: they are not copied.
        bytes = window.into();
        if needed > bound {
            let [needed, limit] = bytes_apart(needed, limits.header_bytes);
            let message = format!("the header has {needed} or more, the limit is {limit}");
            let finding = Finding::error("limit-header", message)
                .at(bytes.len() as u64)
                .help("raise the limit if you trust the file");
            return Err(finding.into());
        }
        target = target.saturating_add(LEAST_STEP.max(target / 2)).max(needed).min(bound);
    }
}
