//! Changing the header of a file on disk without moving its tensor data, where that is possible.
//!
//! Offsets in the directory count from the start of the data section, so a header of another
//! length needs nothing but that the section begins where it began. A *reserve* makes that so: a
//! key of our own whose value is a run of zero bytes, as long as there is room to fill. Files that
//! this module has to rebuild get one, so that the next edit is instant.
//!
//! Reading never writes, and one editor works at a time (`lock.rs`). A header is overwritten by way
//! of a journal (`journal.rs`, `overwrite.rs`) and only while nobody has the file open: otherwise the
//! file is rebuilt, which readers do not notice. An edit that was interrupted is noticed by the next
//! reader and ended by [`recover()`], which somebody has to ask for.

mod journal;
mod lock;
mod overwrite;
pub(crate) mod reading;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use gguf::{Array, Error, Gguf, Header, Metadata, RawHeader, write_header};
#[doc(hidden)]
pub use journal::{Journal, Standing};
pub use lock::EditLock;
pub use overwrite::{Recovery, recover};

use crate::output::{AtomicFile, Existing, Overwrite, is_at};
use crate::progress::Progress;
use crate::source::LocalFile;

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
    /// The file was written anew, its data shared with the old one where the file system can: the
    /// header did not fit, or somebody was reading the file.
    Rebuilt,
}

/// Replaces the header of the file at `path`.
///
/// `edit` changes a draft of the present header; tensors may be renamed, but their number, types,
/// shapes and offsets must stay. In place where the new header fits and nobody reads the file, by
/// way of a journal (see [`recover()`]); otherwise the file is rebuilt beside the old one, with
/// `reserve` spare bytes, and renamed. At no moment is there neither the old version nor the new one,
/// and no other editor comes in between.
///
/// `progress` is called with the number of bytes just copied, if the file is rebuilt; `Break` from
/// it ends the work.
///
/// # Errors
/// As [`EditLock::take`]; [`Error::File`] if the present or the new header breaks a rule, or with
/// code `edit-interrupted`; [`Error::Caller`] if `edit` changed what must stay,
/// [`Error::Environment`] if the file cannot be read or written; and whatever `edit` fails with.
pub fn edit_header<E: From<Error>>(
    path: &Path,
    reserve: u64,
    progress: &dyn Progress,
    edit: impl FnOnce(&mut RawHeader) -> Result<(), E>,
) -> Result<Saved, E> {
    let lock = EditLock::take(path)?;
    // The map is gone before the file under it changes.
    let Some(plan) = plan(lock.model(), reserve, edit)? else { return Ok(Saved::Unchanged) };
    if plan.fits() && overwrite::overwrite(&lock, &plan.old, &plan.new)? {
        return Ok(Saved::InPlace);
    }
    rebuild(&lock, &plan, progress)?;
    Ok(Saved::Rebuilt)
}

/// What an edit takes.
struct Plan {
    /// All bytes of the file before the data.
    old: Vec<u8>,
    /// All that are to be there.
    new: Vec<u8>,
    /// Where the data are now.
    data_start: u64,
}

impl Plan {
    /// Whether the data can stay where they are.
    fn fits(&self) -> bool {
        let len = self.data_start;
        // Without tensor data a file may end before its padding does: there is no room to write in.
        self.old.len() as u64 == len && self.new.len() as u64 == len && len <= journal::MOST
    }
}

/// What an edit of the file at `path` takes; `None` if nothing has to change.
fn plan<E: From<Error>>(
    path: &Path,
    reserve: u64,
    edit: impl FnOnce(&mut RawHeader) -> Result<(), E>,
) -> Result<Option<Plan>, E> {
    let file = LocalFile::open(path)?;
    let map = file.mapped();
    let model = Gguf::read(map)?;
    let data_start = model.data_start();
    let header = model.into_header();
    let mut draft = header.clone().into_raw();
    edit(&mut draft)?;
    if draft == *header.raw() {
        return Ok(None);
    }
    check_layout(&header, &draft)?;
    let old = map[..map.len().min(data_start as usize)].to_vec();
    let new = match fitted(&draft, data_start)? {
        Some(new) => new,
        None => with_reserve(&draft, reserve, data_start)?,
    };
    Ok(Some(Plan { old, new, data_start }))
}

/// Tensors may get other names, nothing else.
fn check_layout(old: &Header, new: &RawHeader) -> Result<(), Error> {
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
    let what = "an edit of the header must leave tensors, byte order and alignment";
    Err(Error::request("edit-layout", what, ""))
}

/// The header's bytes with a reserve of `zeros` bytes, or with none.
fn encoded(draft: &RawHeader, zeros: Option<u64>) -> Result<Vec<u8>, Error> {
    let mut draft = draft.clone();
    reserve(&mut draft.metadata, zeros.map_or(0, |zeros| zeros + RESERVE_OVERHEAD));
    write_header(&Header::new(draft)?)
}

/// The header's bytes such that the data section begins at `data_start`, if it can.
fn fitted(draft: &RawHeader, data_start: u64) -> Result<Option<Vec<u8>>, Error> {
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
fn with_reserve(draft: &RawHeader, spare: u64, data_start: u64) -> Result<Vec<u8>, Error> {
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
fn rebuild(lock: &EditLock, plan: &Plan, progress: &dyn Progress) -> Result<(), Error> {
    /// Bytes that the operating system copies, or shares, at a time.
    const CHUNK: u64 = 64 << 20;
    let fail = |source| lock.failed("copy", source);
    let mut old = File::open(lock.model()).map_err(fail)?;
    overwrite::expect(&old, &plan.old).map_err(fail)?;
    let data_len = old.metadata().map_err(fail)?.len().saturating_sub(plan.data_start);
    old.seek(SeekFrom::Start(plan.data_start)).map_err(fail)?;
    let output = AtomicFile::create(lock.model(), &Overwrite::new(Existing::Replace))?;
    output.write_at(&plan.new, 0)?;
    progress.begin("rebuilding", data_len);
    for first in (0..data_len).step_by(CHUNK as usize) {
        let copied = output.append_from(&mut (&old).take(CHUNK), plan.new.len() as u64 + first)?;
        progress.step(copied)?;
    }
    // What was put in its place meanwhile, by somebody who heeds no lock, is not ours to replace.
    if !is_at(&old, lock.model()) {
        return Err(fail(std::io::Error::other("another file has taken its place meanwhile")));
    }
    output.commit()?;
    // Not being able to is no fault of the model.
    let _ = overwrite::clear_way(lock);
    Ok(())
}
