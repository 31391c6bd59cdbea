//! Comparison of a local file with the remote file that it should be a copy of, and repair of a damaged or unfinished copy.
//!
//! A server states the digest of the whole file, not of its parts. So the ranges that are most likely damaged are fetched
//! first, and the digest decides whether more is needed: the missing end, then runs of zeros, which unfinished downloads
//! leave, then the rest.

mod copy;
mod digest;
mod original;
mod restore;
mod undo;

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::Finding;
use gguf_store::edit::EditLock;
use gguf_store::{AtomicFile, Overwrite, Progress};

use self::copy::{Copy, Target};
pub use self::digest::RemoteDigest;
use self::original::Original;
use crate::error::Error;
use crate::location::Location;
use crate::options::RemoteOptions;

/// Output and limits of a repair.
#[derive(Clone, Debug, Default)]
pub struct RepairOptions {
    /// File to write, which is renamed when it is complete; `None` repairs the damaged file in place.
    pub output: Option<PathBuf>,
    /// Rules for replacing an existing output.
    pub overwrite: Overwrite,
    /// Whether a file that seems to be another file, not a damaged copy, is overwritten too.
    pub accept_other: bool,
}

/// Result of a comparison with a remote file, and of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Location of the remote file, without secrets.
    pub location: String,
    /// State of the local file before a repair.
    pub state: CopyState,
    /// Digest that the hub states.
    pub digest: Option<RemoteDigest>,
    /// Digest of the local file, if it was computed: the lengths are equal, and the hub states a digest.
    pub local_digest: Option<RemoteDigest>,
    /// Length of the remote file in bytes.
    pub len: u64,
    /// Length of the local file in bytes, before a repair.
    pub local_len: u64,
    /// Ranges of the file that a repair replaced or added, sorted.
    pub repaired: Vec<Range<u64>>,
    /// Bytes transferred.
    pub transferred: u64,
}

/// State of a local file, compared with a remote one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// It has the digest that the hub states.
    Equal,
    /// It differs, but is mostly the same.
    Damaged,
    /// It differs in most places: it is another file.
    Other,
    /// The lengths and some samples are equal, and the server states no digest.
    Unknown,
}

impl CopyReport {
    /// Returns the finding about a file that is not an equal copy.
    pub fn finding(&self) -> Option<Finding> {
        let (location, ours, theirs) = (&self.location, self.local_len, self.len);
        let difference = match (&self.local_digest, &self.digest) {
            (Some(ours), Some(theirs)) if self.local_len == self.len => {
                format!("its {ours}, that of {location} is {}", theirs.hex())
            }
            _ if ours == theirs => format!("samples of its bytes differ from {location}"),
            _ => format!("it has {ours} bytes, {location} has {theirs}"),
        };
        match self.state {
            CopyState::Equal => None,
            CopyState::Damaged => Some(
                Finding::error("copy-damaged", difference)
                    .help("`--repair` fetches the damaged ranges"),
            ),
            CopyState::Other => {
                let message = format!("this is another file than {location}: {difference}");
                Some(Finding::error("copy-other", message).help(OTHER_HELP))
            }
            CopyState::Unknown => {
                let message = format!("{location} has the same length, and states no digest");
                let help = "`--repair` fetches the whole file and compares every byte";
                Some(Finding::warning("copy-unverified", message).help(help))
            }
        }
    }
}

/// Advice about another file.
const OTHER_HELP: &str = "name the file that it is a copy of, as in hf:org/repo:file.gguf; `--repair --force` replaces it";

/// Compares a local file with a remote one by length and digest.
///
/// `location` is a file or repository of the hub, a web server or an object store. Of a repository with several files, the
/// file with the name of the local one is meant.
///
/// # Errors
/// Errors of the server and the disk; [`gguf::Error::Caller`] if `location` is a local path.
pub fn compare(
    path: &Path,
    location: &Location,
    options: RemoteOptions,
    progress: &dyn Progress,
) -> Result<CopyReport, Error> {
    let local = File::open(path).map_err(|fault| gguf::Error::environment("open", path, fault))?;
    let original = Original::open(path, location, options)?;
    let mut report = original.compare(&Copy::new(path, Target::File(&local)), progress)?.report;
    report.transferred = original.transferred();
    Ok(report)
}

/// Compares a local file with a remote one, as [`compare`] does, and repairs it if it is not equal.
///
/// Only the missing end and long runs of zeros are fetched if the file then has its digest; otherwise everything is fetched
/// and compared. A repair in place takes the lock of edits. If it is interrupted, the bytes fetched so far stay, and the next
/// repair continues. If the result does not have the digest that the hub states, the file gets its old bytes back.
///
/// # Errors
/// Errors of the server and the disk; [`gguf::Error::Caller`] with code `copy-other` if more than half of some samples differ,
/// with `download-damaged` if the repaired file does not have its digest, and as [`EditLock::take_to_restore`].
pub fn repair(
    path: &Path,
    location: &Location,
    repair: &RepairOptions,
    options: RemoteOptions,
    progress: &dyn Progress,
) -> Result<CopyReport, Error> {
    let local = File::open(path).map_err(|fault| gguf::Error::environment("open", path, fault))?;
    let original = Original::open(path, location, options)?;
    let source = Copy::new(path, Target::File(&local));
    let mut compared = original.compare(&source, progress)?;
    let done = match compared.report.state {
        CopyState::Equal => Ok(()),
        CopyState::Other if !repair.accept_other => {
            let what = format!("{} is another file than {}", path.display(), original.location());
            Err(gguf::Error::request("copy-other", what, OTHER_HELP).into())
        }
        _ => match &repair.output {
            None => {
                drop(local);
                let sha256 = original.digest().and_then(RemoteDigest::sha256);
                let lock = EditLock::take_to_restore(path, sha256)?;
                let file = lock.open_exclusive("repair")?;
                let mut copy = Copy::new(path, Target::File(&file));
                original.restore(&mut copy, &mut compared, progress)?;
                file.sync_all()
                    .map_err(|fault| gguf::Error::environment("write", path, fault).into())
            }
            Some(target) => {
                let output = AtomicFile::create(target, &repair.overwrite)?;
                let mut copy = Copy::new(target, Target::Output(&output));
                source.copy_to(&output, original.len(), progress)?;
                original.restore(&mut copy, &mut compared, progress)?;
                output.commit().map_err(Error::from)
            }
        },
    };
    done?;
    let mut report = compared.report;
    report.transferred = original.transferred();
    Ok(report)
}
