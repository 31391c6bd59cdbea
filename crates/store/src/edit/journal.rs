//! Journal of an in-place header edit: its encoding and its comparison with the model. This module
//! opens no files; [`overwrite`](super::overwrite) does.
//!
//! Before the first byte of the header changes, the old and the new header are saved in a file
//! beside the model. If the process or the machine stops before the new header is complete, crash
//! recovery finishes or undoes the edit with the journal.
//!
//! ```text
//! "GGUFEDIT"  version u32  inode u64  file length u64  modification time u64
//! header length u64  SHA-256 of the old header  SHA-256 of the new header
//! SHA-256 of all fields above
//! old header  new header
//! ```
//!
//! A journal is untrusted input: anyone could have put it there. It is accepted only for a model of
//! the recorded length, if every byte of the model's header is that of the old or the new header,
//! and if both parse as headers of the same tensor data. The device number is not recorded because
//! it may change when the machine restarts.

use std::io::Read;

use bytes::Bytes;
use gguf::{Gguf, Limits};
use sha2::{Digest, Sha256};

use super::check_layout;

const MAGIC: &[u8; 8] = b"GGUFEDIT";
const VERSION: u32 = 1;
const DIGEST: usize = 32;
const FIELDS: usize = 8 + 4 + 8 + 8 + 8 + 8 + 2 * DIGEST;
const PREFIX: usize = FIELDS + DIGEST;

/// Maximum length of a header that is overwritten in place; readers of remote files have the same
/// limit.
pub(super) const MAX_HEADER_LEN: u64 = 256 << 20;

/// A decoded journal whose recorded length matches the model's.
#[derive(Debug, PartialEq, Eq)]
pub struct Journal {
    /// Inode of the model; 0 on systems without inodes.
    pub inode: u64,
    /// Length of the model in bytes.
    pub len: u64,
    /// Modification time of the model before the edit, in nanoseconds since 1970; 0 if unknown.
    pub modified: u64,
    /// Header before the edit.
    pub old: Vec<u8>,
    /// Header after the edit, of the same length.
    pub new: Vec<u8>,
}

/// State of a model's header relative to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderState {
    /// The old header: nothing was overwritten, or the edit was undone.
    Old,
    /// The complete new header.
    New,
    /// Some bytes of the old header and some of the new one.
    Mixed,
    /// Neither header: the journal does not belong to this model.
    Foreign,
}

impl Journal {
    /// Encodes the journal.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PREFIX + self.old.len() + self.new.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        for number in [self.inode, self.len, self.modified, self.old.len() as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&Sha256::digest(&self.old));
        bytes.extend_from_slice(&Sha256::digest(&self.new));
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&checksum);
        bytes.extend_from_slice(&self.old);
        bytes.extend_from_slice(&self.new);
        bytes
    }

    /// Reads a journal of `size` bytes for a model of `len` bytes. Allocates at most the length of
    /// two headers.
    ///
    /// # Errors
    /// The reason why the file is not a journal of this model.
    pub fn read(mut file: impl Read, size: u64, len: u64) -> Result<Self, &'static str> {
        const INCOMPLETE: &str = "it is incomplete";
        let mut prefix = [0; PREFIX];
        file.read_exact(&mut prefix).map_err(|_| INCOMPLETE)?;
        let (fields, checksum) = prefix.split_at(FIELDS);
        let (start, digests) = fields.split_at(FIELDS - 2 * DIGEST);
        if start[..8] != MAGIC[..] || start[8..12] != VERSION.to_le_bytes() {
            return Err("it is not a journal of this version of gguf-kit");
        }
        if Sha256::digest(fields)[..] != *checksum {
            return Err("it is corrupt");
        }
        let mut numbers = start[12..].as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let mut number = || numbers.next().unwrap_or(0);
        let (inode, stated_len, modified, header_len) = (number(), number(), number(), number());
        if stated_len != len {
            return Err("it belongs to a file of another length");
        }
        if header_len > len.min(MAX_HEADER_LEN) || size != PREFIX as u64 + 2 * header_len {
            return Err(INCOMPLETE);
        }
        let mut header = |digest: &[u8]| {
            let mut bytes = vec![0; header_len as usize];
            file.read_exact(&mut bytes).map_err(|_| INCOMPLETE)?;
            if Sha256::digest(&bytes)[..] == *digest { Ok(bytes) } else { Err("it is corrupt") }
        };
        let old = header(&digests[..DIGEST])?;
        let new = header(&digests[DIGEST..])?;
        if !same_data(&old, &new, len) {
            return Err("it does not hold two headers of the same tensor data");
        }
        Ok(Self { inode, len, modified, old, new })
    }

    /// Compares the first bytes of a model with both headers.
    pub fn header_state(&self, present: &[u8]) -> HeaderState {
        let mut pairs = self.old.iter().zip(&self.new).zip(present);
        if present == self.old {
            HeaderState::Old
        } else if present == self.new {
            HeaderState::New
        } else if present.len() == self.old.len()
            && pairs.all(|((old, new), byte)| byte == old || byte == new)
        {
            HeaderState::Mixed
        } else {
            HeaderState::Foreign
        }
    }
}

/// Whether a file begins like a journal, complete or not.
pub(super) fn is_journal(start: &[u8]) -> bool {
    // An edit that was killed while writing the journal leaves a prefix of it.
    MAGIC.starts_with(&start[..start.len().min(MAGIC.len())])
}

/// Whether both are headers, up to the start of the tensor data, of a file of `len` bytes with the
/// same data layout.
fn same_data(old: &[u8], new: &[u8], len: u64) -> bool {
    let read = |bytes: &[u8]| {
        let bytes = Bytes::copy_from_slice(bytes);
        let gguf = Gguf::read_header(&bytes, len, Limits::default()).ok()?;
        (gguf.data_start() == bytes.len() as u64).then(|| gguf.into_header())
    };
    match (read(old), read(new)) {
        (Some(old), Some(new)) => check_layout(&old, new.raw()).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use gguf::{Header, RawHeader, write_header};

    use super::*;

    /// Returns the header of a model without tensors; names of the same length give headers of the
    /// same length.
    pub(in crate::edit) fn header(name: &str) -> Vec<u8> {
        let mut draft = RawHeader::default();
        draft.metadata.set("general.architecture", "llama");
        draft.metadata.set("general.name", name);
        write_header(&Header::new(draft).unwrap()).unwrap()
    }

    pub(in crate::edit) fn journal() -> Journal {
        let (old, new) = (header("the old name"), header("THE NEW NAME"));
        Journal { inode: 7, len: old.len() as u64 + 5, modified: 9, old, new }
    }

    /// Returns the position of the first byte that differs.
    pub(in crate::edit) fn difference(old: &[u8], new: &[u8]) -> usize {
        old.iter().zip(new).position(|(a, b)| a != b).unwrap()
    }

    fn read(bytes: &[u8], len: u64) -> Result<Journal, &'static str> {
        Journal::read(bytes, bytes.len() as u64, len)
    }

    #[test]
    fn round_trip() {
        let journal = journal();
        assert_eq!(read(&journal.encode(), journal.len), Ok(journal));
    }

    #[test]
    fn corrupt_journals_are_rejected() {
        let journal = journal();
        let whole = journal.encode();
        for i in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[i] ^= 1;
            assert!(read(&damaged, journal.len).is_err(), "byte {i}");
            assert!(read(&whole[..i], journal.len).is_err(), "truncated at {i}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(read(&longer, journal.len), Err("it is incomplete"));
        assert!(is_journal(&whole) && is_journal(b"GGU") && is_journal(b""));
        assert!(!is_journal(b"dear diary") && !is_journal(b"G.") && !is_journal(b"GGUFJRNL"));
    }

    #[test]
    fn journals_of_other_files_are_rejected() {
        let journal = journal();
        let bytes = journal.encode();
        assert_eq!(read(&bytes, journal.len + 1), Err("it belongs to a file of another length"));
        let state = |present: &[u8]| journal.header_state(present);
        assert_eq!(state(&journal.old), HeaderState::Old);
        assert_eq!(state(&journal.new), HeaderState::New);
        let (mut mixed, cut) = (journal.old.clone(), difference(&journal.old, &journal.new) + 6);
        mixed[cut..].copy_from_slice(&journal.new[cut..]);
        assert_eq!(state(&mixed), HeaderState::Mixed);
        mixed[3] ^= 1;
        assert_eq!(state(&mixed), HeaderState::Foreign);
        assert_eq!(state(&journal.old[1..]), HeaderState::Foreign);
        assert_eq!(state(b""), HeaderState::Foreign);
    }

    /// A well-formed journal with a valid checksum must still hold two headers of one model.
    #[test]
    fn forged_journals_are_rejected() {
        let refused = |change: fn(&mut Journal)| {
            let mut journal = journal();
            change(&mut journal);
            assert!(read(&journal.encode(), journal.len).is_err());
        };
        refused(|journal| (journal.old, journal.new) = (vec![b'#'; 40], vec![b'x'; 40]));
        refused(|journal| journal.old[0] = b'g');
        refused(|journal| journal.new[0] = b'g');
        // The headers end before the data section: padding would be overwritten too.
        refused(|journal| {
            journal.old.push(0);
            journal.new.push(0);
        });
        refused(|journal| journal.len = journal.old.len() as u64 - 1);
        // The headers have the same length but another byte order.
        refused(|journal| {
            let mut draft =
                Gguf::read(&journal.old.clone().into()).unwrap().into_header().into_raw();
            draft.order = gguf::ByteOrder::Big;
            let other = write_header(&Header::new(draft).unwrap()).unwrap();
            assert_eq!(other.len(), journal.old.len());
            journal.new = other;
        });
    }
}
