//! The journal of a header that is being overwritten in place: its form, and what it says about a
//! model. Nothing here opens a file; [`overwrite`](super::overwrite) does.
//!
//! Before the first byte of the header changes, the old and the new one are saved in a file beside
//! the model. If the process or the machine stops before the new header is complete, the journal
//! has all that is needed to finish the edit or to undo it.
//!
//! ```text
//! "GGUFEDIT"  form u32  inode u64  length of the model u64  time of its last change u64
//! length of a header u64  SHA-256 of the old one  SHA-256 of the new one
//! SHA-256 of all of the above
//! old header  new header
//! ```
//!
//! A journal is a file that anybody could have put there, so it proves nothing by itself: it counts
//! only for a model of that length whose header is made of bytes of the one and the other, and
//! both must be headers for the same tensor data. The device is not in it, because devices are
//! numbered anew when a machine starts after a crash.

use std::io::Read;

use bytes::Bytes;
use gguf::{Gguf, Limits};
use sha2::{Digest, Sha256};

use super::check_layout;

const MAGIC: &[u8; 8] = b"GGUFEDIT";
const FORM: u32 = 1;
const DIGEST: usize = 32;
const FIELDS: usize = 8 + 4 + 8 + 8 + 8 + 8 + 2 * DIGEST;
const PREFIX: usize = FIELDS + DIGEST;

/// The longest header that is overwritten in place: as much as is read of a far one.
pub(super) const MOST: u64 = 256 << 20;

/// A journal that could be one of a model of this length.
#[derive(Debug, PartialEq, Eq)]
pub struct Journal {
    /// The inode of the model; 0 where files have none.
    pub inode: u64,
    /// Bytes of the model.
    pub len: u64,
    /// When the model was last changed before the edit, in nanoseconds since 1970; 0 if unknown.
    pub modified: u64,
    /// Its first bytes before the edit.
    pub old: Vec<u8>,
    /// As many, after it.
    pub new: Vec<u8>,
}

/// What the first bytes of a model are, by a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The old header: nothing was overwritten, or all is undone.
    Old,
    /// The new header, complete.
    New,
    /// Partly the one and partly the other.
    Between,
    /// Neither: the journal is not about this model.
    Foreign,
}

impl Journal {
    /// The journal as it is on disk.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PREFIX + self.old.len() + self.new.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORM.to_le_bytes());
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

    /// Reads a journal of `size` bytes that lies beside a model of `len` bytes. Takes no more
    /// memory than two headers of that model can have.
    ///
    /// # Errors
    /// Why it is none of this model.
    pub fn read(mut file: impl Read, size: u64, len: u64) -> Result<Self, &'static str> {
        const SHORT: &str = "it is not complete";
        let mut prefix = [0; PREFIX];
        file.read_exact(&mut prefix).map_err(|_| SHORT)?;
        let (fields, checksum) = prefix.split_at(FIELDS);
        let (start, digests) = fields.split_at(FIELDS - 2 * DIGEST);
        if start[..8] != MAGIC[..] || start[8..12] != FORM.to_le_bytes() {
            return Err("it is no journal of this version of gguf-kit");
        }
        if Sha256::digest(fields)[..] != *checksum {
            return Err("it is damaged");
        }
        let mut numbers = start[12..].as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let mut number = || numbers.next().unwrap_or(0);
        let (inode, stated_len, modified, header_len) = (number(), number(), number(), number());
        if stated_len != len {
            return Err("it is about a file of another length");
        }
        if header_len > len.min(MOST) || size != PREFIX as u64 + 2 * header_len {
            return Err(SHORT);
        }
        let mut header = |digest: &[u8]| {
            let mut bytes = vec![0; header_len as usize];
            file.read_exact(&mut bytes).map_err(|_| SHORT)?;
            if Sha256::digest(&bytes)[..] == *digest { Ok(bytes) } else { Err("it is damaged") }
        };
        let old = header(&digests[..DIGEST])?;
        let new = header(&digests[DIGEST..])?;
        if !same_data(&old, &new, len) {
            return Err("what it has are no two headers of the same tensor data");
        }
        Ok(Self { inode, len, modified, old, new })
    }

    /// What the first bytes of a model are, as many as a header has.
    pub fn standing(&self, present: &[u8]) -> Standing {
        let mut pairs = self.old.iter().zip(&self.new).zip(present);
        if present == self.old {
            Standing::Old
        } else if present == self.new {
            Standing::New
        } else if present.len() == self.old.len()
            && pairs.all(|((old, new), byte)| byte == old || byte == new)
        {
            Standing::Between
        } else {
            Standing::Foreign
        }
    }
}

/// Whether a file that begins so was made to be a journal, whatever became of it.
pub(super) fn is_journal(start: &[u8]) -> bool {
    // An edit that was killed while it wrote the journal leaves the start of one.
    MAGIC.starts_with(&start[..start.len().min(MAGIC.len())])
}

/// Whether both are headers, up to the start of the tensor data, of a file of `len` bytes with the
/// same data.
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

    /// A header of a model without tensors, as long as any other with a name of that length.
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

    /// Where two headers begin to differ.
    pub(in crate::edit) fn difference(old: &[u8], new: &[u8]) -> usize {
        old.iter().zip(new).position(|(a, b)| a != b).unwrap()
    }

    fn read(bytes: &[u8], len: u64) -> Result<Journal, &'static str> {
        Journal::read(bytes, bytes.len() as u64, len)
    }

    #[test]
    fn what_is_written_is_read() {
        let journal = journal();
        assert_eq!(read(&journal.encode(), journal.len), Ok(journal));
    }

    #[test]
    fn a_damaged_journal_is_none() {
        let journal = journal();
        let whole = journal.encode();
        for i in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[i] ^= 1;
            assert!(read(&damaged, journal.len).is_err(), "byte {i}");
            assert!(read(&whole[..i], journal.len).is_err(), "cut at {i}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(read(&longer, journal.len), Err("it is not complete"));
        assert!(is_journal(&whole) && is_journal(b"GGU") && is_journal(b""));
        assert!(!is_journal(b"dear diary") && !is_journal(b"G.") && !is_journal(b"GGUFJRNL"));
    }

    #[test]
    fn a_journal_of_another_file_is_none() {
        let journal = journal();
        let bytes = journal.encode();
        assert_eq!(read(&bytes, journal.len + 1), Err("it is about a file of another length"));
        let standing = |present: &[u8]| journal.standing(present);
        assert_eq!(standing(&journal.old), Standing::Old);
        assert_eq!(standing(&journal.new), Standing::New);
        let (mut between, cut) = (journal.old.clone(), difference(&journal.old, &journal.new) + 6);
        between[cut..].copy_from_slice(&journal.new[cut..]);
        assert_eq!(standing(&between), Standing::Between);
        between[3] ^= 1;
        assert_eq!(standing(&between), Standing::Foreign);
        assert_eq!(standing(&journal.old[1..]), Standing::Foreign);
        assert_eq!(standing(b""), Standing::Foreign);
    }

    /// What is well formed and has a right checksum must still be two headers of one model.
    #[test]
    fn a_forged_journal_is_none() {
        let refused = |change: fn(&mut Journal)| {
            let mut journal = journal();
            change(&mut journal);
            assert!(read(&journal.encode(), journal.len).is_err());
        };
        refused(|journal| (journal.old, journal.new) = (vec![b'#'; 40], vec![b'x'; 40]));
        refused(|journal| journal.old[0] = b'g');
        refused(|journal| journal.new[0] = b'g');
        // Not up to the data: what follows would be overwritten too.
        refused(|journal| {
            journal.old.push(0);
            journal.new.push(0);
        });
        refused(|journal| journal.len = journal.old.len() as u64 - 1);
        // As long, but the data would be read otherwise.
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
