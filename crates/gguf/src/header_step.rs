//! Reads of a header whose length is not known, with few requests and few bytes.

use bytes::Bytes;

use crate::error::Error;
use crate::finding::Finding;
use crate::read::{HeaderExtent, Limits, header_extent};
use crate::units::distinct_sizes;

/// Number of bytes that [`header_step`] reads first: enough for a header without a vocabulary.
pub const FIRST_READ: u64 = 256 << 10;

/// Minimum size of each further read: about one round trip at 100 Mbit/s.
const MIN_STEP: u64 = 1 << 20;

/// Next step of a reader of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderStep {
    /// Read up to this byte of the file.
    Read(u64),
    /// Nothing more is required: this many of the available bytes belong to the header. A header that is invalid ends here
    /// too; [`Gguf::read_header`](crate::Gguf::read_header) and [`check_header`](crate::check_header) report the fault.
    Done(u64),
}

/// Returns the next step of a reader that has the first `bytes` of a file of `file_len` bytes; it starts with none.
///
/// A step reads at least the bytes that the parser knows to be missing and half of those already present. A header of `n`
/// bytes therefore takes about `log(n)` reads and at most `n / 2` bytes, or one MiB, beyond its end. A length that reaches
/// past the end of the file is not read.
///
/// # Errors
/// [`Error::File`] if the header needs more than [`Limits::header_bytes`].
pub fn header_step(bytes: &Bytes, file_len: u64, limits: Limits) -> Result<HeaderStep, Error> {
    let bound = file_len.min(limits.header_bytes);
    let present = bytes.len() as u64;
    if present == 0 && bound > 0 {
        return Ok(HeaderStep::Read(FIRST_READ.min(bound)));
    }
    let needed = match header_extent(bytes, file_len, limits) {
        HeaderExtent::Complete(end) => return Ok(HeaderStep::Done(end.min(present))),
        HeaderExtent::Faulty => return Ok(HeaderStep::Done(present)),
        HeaderExtent::Short(needed) => needed,
    };
    if needed > bound {
        let [needed, limit] = distinct_sizes(needed, limits.header_bytes);
        let message = format!("the header takes at least {needed}; the limit is {limit}");
        let finding = Finding::error("limit-header", message)
            .at(present)
            .help("raise the limit if you trust the file");
        return Err(finding.into());
    }
    let target = present.saturating_add(MIN_STEP.max(present / 2));
    Ok(HeaderStep::Read(target.max(needed).min(bound)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_and_end_with_the_header() {
        let limits = Limits { header_bytes: 4 << 20, ..Limits::default() };
        let step = |bytes: &[u8], len| header_step(&Bytes::copy_from_slice(bytes), len, limits);
        assert_eq!(step(b"", 10 << 20).unwrap(), HeaderStep::Read(FIRST_READ));
        assert_eq!(step(b"", 100).unwrap(), HeaderStep::Read(100));
        // An empty file has nothing to read.
        assert_eq!(step(b"", 0).unwrap(), HeaderStep::Done(0));
        assert_eq!(step(b"no GGUF file", 100).unwrap(), HeaderStep::Done(12));
        // One key, whose name has three MiB: more than a step.
        let with_key = |len: u64| {
            let counts = [0, 1, len].map(u64::to_le_bytes).concat();
            [&b"GGUF\x03\0\0\0"[..], &counts, &[b'k'; 100]].concat()
        };
        let HeaderStep::Read(end) = step(&with_key(3 << 20), 10 << 20).unwrap() else {
            panic!("more follows")
        };
        assert!((3 << 20..4 << 20).contains(&end), "{end}");
        // The limit is smaller than the key.
        assert_eq!(step(&with_key(5 << 20), 10 << 20).unwrap_err().code(), "limit-header");
    }
}
