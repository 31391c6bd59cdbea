//! Edits of a file's header, in place where possible.
//!
//! Tensor offsets count from the start of the data section. A new header of another length
//! therefore only has to end where the old one ended. A *reserve* makes that possible: the metadata
//! key [`RESERVE_KEY`] whose value is an array of zero bytes that fills the remaining room. A
//! rebuilt file gets a reserve so that the next edit can be done in place.
//!
//! Readers never write, and editors exclude each other (`lock.rs`). A header is overwritten with a
//! journal (`journal.rs`, `overwrite.rs`) and only while the file is not open elsewhere; otherwise
//! the file is rebuilt, which does not disturb readers. After a crash the next reader detects the
//! interrupted edit, and an explicit call of [`recover()`] finishes or undoes it.

mod journal;
mod lock;
mod overwrite;
pub(crate) mod reading;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use gguf::{Array, Error, Gguf, Header, Limits, Metadata, RawHeader, write_header};
#[doc(hidden)]
pub use journal::{HeaderState, Journal};
pub use lock::EditLock;
pub use overwrite::{Recovery, recover};
use reading::prepare_read;

use crate::file_id::FileId;
use crate::map::FileMap;
use crate::output::{AtomicFile, Existing, Overwrite};
use crate::progress::Progress;

/// Metadata key whose value fills the room before the tensor data.
pub const RESERVE_KEY: &str = "gguf_kit.reserve";

/// Bytes of the reserve besides its zeros: length and bytes of the key, value type, element type,
/// count.
const RESERVE_OVERHEAD: u64 = 8 + RESERVE_KEY.len() as u64 + 4 + 4 + 8;

/// Maximum length of a reserve: about half of the header length that readers of remote files
/// accept.
pub const MAX_RESERVE: u64 = 128_000_000;

/// Adds `bytes` spare bytes for later edits to a header that is about to be written, at most
/// [`MAX_RESERVE`]; removes the reserve if `bytes` is 0.
pub fn reserve(metadata: &mut Metadata, bytes: u64) {
    metadata.remove(RESERVE_KEY);
    if bytes > 0 {
        let zeros = bytes.min(MAX_RESERVE).saturating_sub(RESERVE_OVERHEAD);
        metadata.push(RESERVE_KEY, Array::from(&vec![0u8; zeros as usize][..]));
    }
}

/// The change that [`edit_header`] made to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The edit changed nothing.
    Unchanged,
    /// The header was overwritten; no tensor data was touched.
    InPlace,
    /// The file was rewritten, sharing data blocks with the old file where the file system supports
    /// that: the header did not fit, or the file was open elsewhere.
    Rebuilt,
}

/// Replaces the header of the file at `path`.
///
/// `edit` changes a draft of the present header. It may rename tensors; their number, types, shapes
/// and offsets must stay. If the new header fits and the file is not open elsewhere, it is
/// overwritten in place with a journal (see [`recover()`]); otherwise the file is rebuilt with
/// `reserve` spare bytes and atomically renamed. At every moment the old or the new version is
/// complete on disk or can be recovered, and no concurrent edit is lost.
///
/// If the file is rebuilt, `progress` receives the number of bytes of each copy; `Break` cancels
/// the edit.
///
/// # Errors
/// As [`EditLock::take`]; [`Error::File`] if the present or the new header breaks a rule, or with
/// code `edit-interrupted`; [`Error::Caller`] if `edit` changed the layout; [`Error::Environment`]
/// if the file cannot be read or written; and any error of `edit`.
pub fn edit_header<E: From<Error>>(
    path: &Path,
    reserve: u64,
    progress: &dyn Progress,
    edit: impl FnOnce(&mut RawHeader) -> Result<(), E>,
) -> Result<EditOutcome, E> {
    let lock = EditLock::take(path)?;
    // The map is dropped before the file changes.
    let Some(plan) = plan(lock.model(), reserve, edit)? else { return Ok(EditOutcome::Unchanged) };
    if plan.fits() && overwrite::overwrite(&lock, &plan.old, &plan.new)? {
        return Ok(EditOutcome::InPlace);
    }
    rebuild(&lock, &plan, progress)?;
    Ok(EditOutcome::Rebuilt)
}

/// Effect that [`edit_header`] would have on a file that is not open elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditPreview {
    /// The change of the file.
    pub outcome: EditOutcome,
    /// Bytes of the file before and after.
    pub file_len: (u64, u64),
    /// Zero bytes in the value of [`RESERVE_KEY`] before and after; `None` if the key is absent.
    pub reserve: (Option<u64>, Option<u64>),
}

/// Returns the effect of [`edit_header`] without writing.
///
/// # Errors
/// As [`edit_header`], except errors of writing.
pub fn preview_header<E: From<Error>>(
    path: &Path,
    reserve: u64,
    edit: impl FnOnce(&mut RawHeader) -> Result<(), E>,
) -> Result<EditPreview, E> {
    let file_len = path.metadata().map_err(|e| Error::environment("open", path, e))?.len();
    let spare = |header: Vec<u8>, data_len: u64| -> Result<Option<u64>, Error> {
        let len = (header.len() as u64).saturating_add(data_len);
        let read = Gguf::read_header(&header.into(), len, Limits::default())?;
        Ok(read.metadata().array(RESERVE_KEY).map(Array::len))
    };
    let plan = plan(path, reserve, edit)?;
    let data_len = plan.as_ref().map_or(0, |plan| file_len.saturating_sub(plan.data_start));
    Ok(match plan {
        None => EditPreview {
            outcome: EditOutcome::Unchanged,
            file_len: (file_len, file_len),
            reserve: (None, None),
        },
        Some(plan) => EditPreview {
            outcome: if plan.fits() { EditOutcome::InPlace } else { EditOutcome::Rebuilt },
            file_len: (file_len, plan.new.len() as u64 + data_len),
            reserve: (spare(plan.old, data_len)?, spare(plan.new, data_len)?),
        },
    })
}

/// Old and new header of an edit.
struct Plan {
    /// Bytes of the file before the tensor data.
    old: Vec<u8>,
    /// Bytes that replace `old`.
    new: Vec<u8>,
    /// Present start of the data section.
    data_start: u64,
}

impl Plan {
    /// Whether the data can stay in place.
    fn fits(&self) -> bool {
        let len = self.data_start;
        // A file without tensor data may end before its padding: the new header has no room.
        self.old.len() as u64 == len
            && self.new.len() as u64 == len
            && len <= journal::MAX_HEADER_LEN
    }
}

/// Plans an edit of the file at `path`; `None` if nothing changes.
fn plan<E: From<Error>>(
    path: &Path,
    reserve: u64,
    edit: impl FnOnce(&mut RawHeader) -> Result<(), E>,
) -> Result<Option<Plan>, E> {
    let fail = |action| move |source| Error::environment(action, path, source);
    let file = Arc::new(File::open(path).map_err(fail("open"))?);
    prepare_read(&file, path)?;
    let map = FileMap::new(file).map_err(fail("map"))?;
    let map = map.bytes();
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

/// Checks that only tensor names changed.
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
    let what = "an edit of the header must not change tensors, byte order or alignment";
    Err(Error::request("edit-layout", what, ""))
}

/// Encodes the header with a reserve of `zeros` bytes, or without a reserve.
fn encoded(draft: &RawHeader, zeros: Option<u64>) -> Result<Vec<u8>, Error> {
    let mut draft = draft.clone();
    reserve(&mut draft.metadata, zeros.map_or(0, |zeros| zeros + RESERVE_OVERHEAD));
    write_header(&Header::new(draft)?)
}

/// Encodes the header such that the data section begins at `data_start`, if it fits.
fn fitted(draft: &RawHeader, data_start: u64) -> Result<Option<Vec<u8>>, Error> {
    let plain = encoded(draft, None)?;
    if plain.len() as u64 == data_start {
        return Ok(Some(plain));
    }
    // Alignment may move the data section by more than the reserve itself: measure with an empty
    // reserve, then fill up.
    let smallest = encoded(draft, Some(0))?.len() as u64;
    let Some(zeros) = data_start.checked_sub(smallest) else { return Ok(None) };
    let filled = encoded(draft, Some(zeros))?;
    Ok((filled.len() as u64 == data_start).then_some(filled))
}

/// Encodes the header with at least `spare` spare bytes. The data section moves by a multiple of
/// the file system's block size so that the new file can share its blocks.
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

/// Writes the new header and the old data to a new file and renames it over the old one.
fn rebuild(lock: &EditLock, plan: &Plan, progress: &dyn Progress) -> Result<(), Error> {
    /// Bytes per copy operation.
    const CHUNK: u64 = 64 << 20;
    let fail = |source| lock.failed("copy", source);
    let mut old = File::open(lock.model()).map_err(fail)?;
    overwrite::check_start(&old, &plan.old).map_err(fail)?;
    let data_len = old.metadata().map_err(fail)?.len().saturating_sub(plan.data_start);
    old.seek(SeekFrom::Start(plan.data_start)).map_err(fail)?;
    let output = AtomicFile::create(lock.model(), &Overwrite::new(Existing::Replace))?;
    output.write_at(&plan.new, 0)?;
    progress.begin("rebuilding", data_len);
    for first in (0..data_len).step_by(CHUNK as usize) {
        let copied = output.append_from(&mut (&old).take(CHUNK), plan.new.len() as u64 + first)?;
        progress.step(copied)?;
    }
    // A program that ignores the lock may have replaced the file meanwhile: do not overwrite its
    // file.
    if !FileId::is_at(&old, lock.model()) {
        return Err(fail(std::io::Error::other("another file has replaced it meanwhile")));
    }
    // Windows replaces no open file.
    drop(old);
    output.commit()?;
    // A stale journal that cannot be removed does not affect the model.
    let _ = overwrite::remove_stale_journal(lock);
    Ok(())
}
