//! Changing the header of a file on disk without moving its tensor data, where that is possible.
//!
//! Offsets in the directory count from the start of the data section, so a header of another
//! length needs nothing but that the section begins where it began. A *reserve* makes that so: a
//! key of our own whose value is a run of zero bytes, as long as there is room to fill. Files that
//! this module has to rebuild get one, so that the next edit is instant.

mod journal;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use crate::array::Array;
use crate::error::Error;
use crate::header::{Draft, Header};
use crate::map::Map;
use crate::metadata::Metadata;
use crate::output::Output;
use crate::read::Gguf;
use crate::write::write_header;

pub use journal::recover;

/// The key whose value fills the room before the tensor data.
pub const RESERVE_KEY: &str = "gguf_kit.reserve";

/// Bytes that the reserve takes beside its zeros: length and bytes of the key, value type, element
/// type, count.
const RESERVE_OVERHEAD: u64 = 8 + RESERVE_KEY.len() as u64 + 4 + 4 + 8;

/// The most spare bytes that a header gets: about half of what readers of far files fetch of one.
pub const MAX_RESERVE: u64 = 128_000_000;

/// Gives a header that is about to be written `bytes` spare bytes for later edits, at most
/// [`MAX_RESERVE`]; none if 0.
pub fn reserve(metadata: &mut Metadata, bytes: u64) {
    metadata.remove(RESERVE_KEY);
    if bytes > 0 {
        let zeros = bytes.min(MAX_RESERVE).saturating_sub(RESERVE_OVERHEAD);
        metadata.push(RESERVE_KEY, Array::from(&vec![0u8; zeros as usize][..]));
    }
}

/// How an edit was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// Nothing had to change.
    Unchanged,
    /// The header was overwritten; no tensor data was touched.
    InPlace,
    /// The file was written anew, its data shared with the old one where the file system can.
    Rebuilt,
}

/// Replaces the header of the file at `path`.
///
/// `edit` changes a draft of the present header; tensors may be renamed, but their number, types,
/// shapes and offsets must stay. In place where the new header fits, by way of a journal (see
/// [`recover`]); otherwise the file is rebuilt beside the old one, with `reserve` spare bytes, and
/// renamed. At no moment is there neither the old version nor the new one.
///
/// `progress` is called with the number of bytes just copied, if the file is rebuilt; `Break` from
/// it ends the work.
///
/// # Errors
/// [`Error::File`] if the present or the new header breaks a rule, [`Error::Caller`] if `edit`
/// changed what must stay, [`Error::Environment`] if the file cannot be read or written; and
/// whatever `edit` fails with.
pub fn edit_header<E: From<Error>>(
    path: &Path,
    reserve: u64,
    progress: &dyn Fn(u64) -> ControlFlow<()>,
    edit: impl FnOnce(&mut Draft) -> Result<(), E>,
) -> Result<Saved, E> {
    // The map must be gone before the file under it changes.
    match plan(path, reserve, edit)? {
        Step::Nothing => Ok(Saved::Unchanged),
        Step::Overwrite { len, old, new } => {
            journal::overwrite(path, len, &old, &new)?;
            Ok(Saved::InPlace)
        }
        Step::Rebuild { header, data_start } => {
            rebuild(path, &header, data_start, progress)?;
            Ok(Saved::Rebuilt)
        }
    }
}

/// What an edit takes.
enum Step {
    Nothing,
    /// The first bytes of a file of `len` bytes.
    Overwrite {
        len: u64,
        old: Vec<u8>,
        new: Vec<u8>,
    },
    /// A file of this header and the data that begin at `data_start` in the old one.
    Rebuild {
        header: Vec<u8>,
        data_start: u64,
    },
}

fn plan<E: From<Error>>(
    path: &Path,
    reserve: u64,
    edit: impl FnOnce(&mut Draft) -> Result<(), E>,
) -> Result<Step, E> {
    let map = Map::open(path)?;
    let model = Gguf::read(&map)?;
    let (data_start, len) = (model.data_start(), map.len() as u64);
    let old = model.into_header();
    let mut draft = old.clone().into_draft();
    edit(&mut draft)?;
    if draft == *old.draft() {
        return Ok(Step::Nothing);
    }
    check_layout(&old, &draft)?;
    // Without tensor data a file may end before its padding does: there is no room to write in.
    if len >= data_start
        && let Some(new) = fitted(&draft, data_start)?
    {
        return Ok(Step::Overwrite { len, old: map[..new.len()].to_vec(), new });
    }
    Ok(Step::Rebuild { header: with_reserve(&draft, reserve, data_start)?, data_start })
}

/// Tensors may get other names, nothing else.
fn check_layout(old: &Header, new: &Draft) -> Result<(), Error> {
    let same =
        old.tensors().len() == new.tensors.len()
            && old.tensors().iter().zip(&new.tensors).all(|(a, b)| {
                (a.shape, a.tensor_type, a.offset) == (b.shape, b.tensor_type, b.offset)
            })
            && old.order() == new.order
            && Some(old.alignment()) == new.alignment().ok();
    if same {
        return Ok(());
    }
    Err(Error::Caller("an edit of the header must leave tensors, byte order and alignment".into()))
}

/// The header's bytes with a reserve of `zeros` bytes, or with none.
fn encoded(draft: &Draft, zeros: Option<u64>) -> Result<Vec<u8>, Error> {
    let mut draft = draft.clone();
    reserve(&mut draft.metadata, zeros.map_or(0, |zeros| zeros + RESERVE_OVERHEAD));
    write_header(&Header::new(draft)?)
}

/// The header's bytes such that the data section begins at `data_start`, if it can.
fn fitted(draft: &Draft, data_start: u64) -> Result<Option<Vec<u8>>, Error> {
    let plain = encoded(draft, None)?;
    if plain.len() as u64 == data_start {
        return Ok(Some(plain));
    }
    // The smallest reserve may push the data a whole step further on than the room it takes:
    // measured, then filled up.
    let smallest = encoded(draft, Some(0))?.len() as u64;
    let Some(zeros) = data_start.checked_sub(smallest) else { return Ok(None) };
    let filled = encoded(draft, Some(zeros))?;
    Ok((filled.len() as u64 == data_start).then_some(filled))
}

/// The header's bytes with at least `spare` spare bytes, at a distance from the old data section
/// that is a multiple of a file system's block, so that it can share the data.
fn with_reserve(draft: &Draft, spare: u64, data_start: u64) -> Result<Vec<u8>, Error> {
    const BLOCK: u64 = 4096;
    if spare == 0 {
        return encoded(draft, None);
    }
    let zeros = spare.saturating_sub(RESERVE_OVERHEAD);
    let least = encoded(draft, Some(zeros))?.len() as u64;
    let distance = (data_start % BLOCK + BLOCK - least % BLOCK) % BLOCK;
    encoded(draft, Some(zeros + distance))
}

/// Writes header and the data of the old file to a new one, and swaps them.
fn rebuild(
    path: &Path,
    header: &[u8],
    data_start: u64,
    progress: &dyn Fn(u64) -> ControlFlow<()>,
) -> Result<(), Error> {
    /// Bytes that the operating system copies, or shares, at a time.
    const CHUNK: u64 = 64 << 20;
    let fail = |source| Error::environment("copy", path, source);
    let mut old = File::open(path).map_err(fail)?;
    let data_len = old.metadata().map_err(fail)?.len().saturating_sub(data_start);
    old.seek(SeekFrom::Start(data_start)).map_err(fail)?;
    let output = Output::create(path)?;
    output.write_at(header, 0)?;
    for first in (0..data_len).step_by(CHUNK as usize) {
        let copied = output.append_from(&mut (&old).take(CHUNK), header.len() as u64 + first)?;
        if progress(copied).is_break() {
            return Err(Error::Interrupted);
        }
    }
    output.commit()
}
