//! Uploads to repositories on the Hugging Face Hub: one commit for all files.
//!
//! 1. What the repository has is listed, at the commit of the branch. A file that differs is replaced only if the caller
//!    says so; equal files are skipped.
//! 2. The hub says which files are text, to be part of the commit, and which are large (`preupload`).
//! 3. Large files go to the storage of the hub ([`lfs`]); content that it has is not sent again.
//! 4. The commit names the parent that was listed. If the branch has moved, what it has is compared again.
//!
//! The requests are those of `huggingface_hub` (`_commit_api.py`, `lfs.py`).

mod commit;
mod lfs;
mod record;
mod request;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use gguf_store::digest::hex;
use gguf_store::{Existing, FileState, Progress, ReadFile, Source};
use sha2::{Digest, Sha256};

use self::commit::{Addition, Branch};
use self::record::Record;
use crate::cache;
use crate::client::Client;
use crate::error::Fault;
use crate::hub;
use crate::location::Repository;
use crate::options::RemoteOptions;

/// Bytes per read while hashing.
const CHUNK: usize = 8 << 20;

/// Maximum length of a file that is part of the commit; larger ones go to the storage. The hub refuses larger ones.
const MAX_REGULAR: u64 = 10 << 20;

/// A file to upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadFile {
    /// Path on the disk.
    pub path: PathBuf,
    /// Path in the repository.
    pub name: String,
}

/// Options of an upload.
#[derive(Clone, Debug, Default)]
pub struct UploadOptions {
    /// Whether files of the repository that differ are replaced.
    pub existing: Existing,
    /// Creates the repository or branch if it does not exist.
    pub create: Option<Visibility>,
    /// Commit message; names the files if `None`.
    pub message: Option<String>,
    /// Directory of the records of interrupted uploads; `None` sends files from the beginning.
    pub records: Option<PathBuf>,
}

/// Visibility of a new repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Visible to everybody.
    Public,
    /// Visible to its owner.
    Private,
}

/// Result of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadReport {
    /// New commit; `None` if nothing changed.
    pub commit: Option<String>,
    /// Address of the page of the commit.
    pub url: Option<String>,
    /// Files in the order of the request.
    pub files: Vec<UploadedFile>,
}

/// Result for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedFile {
    /// Path in the repository.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256.
    pub sha256: String,
    /// Result.
    pub state: UploadState,
}

/// Result of an upload for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadState {
    /// Its bytes were sent.
    Sent,
    /// It was committed; the storage had its bytes already.
    Stored,
    /// The repository had it already.
    Unchanged,
    /// The repository's `.gitignore` excludes it.
    Ignored,
}

/// Returns the directory for the records of interrupted uploads and for outputs that wait for their upload:
/// `$XDG_CACHE_HOME/gguf-kit/uploads` or the equivalent of the system; `None` if the user has no home directory.
pub fn upload_directory() -> Option<PathBuf> {
    Some(cache::user_directory()?.join("uploads"))
}

/// Creates the repository or branch if the options say so, and checks what can be checked without the files: the token, and
/// that no file exists that must not be replaced.
///
/// # Errors
/// [`gguf::Error::Exists`]; [`gguf::Error::Environment`] with advice.
pub fn prepare_upload(
    repository: &Repository,
    names: &[String],
    options: &UploadOptions,
    remote: RemoteOptions,
) -> Result<(), gguf::Error> {
    let branch = Branch::open(Arc::new(Client::new(remote)?), repository, options.create)?;
    match names.iter().find(|name| branch.entries.contains_key(*name)) {
        Some(name) if options.existing == Existing::Refuse => Err(exists(repository, name)),
        _ => Ok(()),
    }
}

/// Uploads files in one commit.
///
/// # Errors
/// [`gguf::Error::Exists`] if the repository has another file of the same name, and the options do not say that it may be
/// replaced; [`gguf::Error::Environment`] with advice if the hub refuses; [`gguf::Error::Interrupted`].
pub fn upload(
    repository: &Repository,
    files: &[UploadFile],
    options: &UploadOptions,
    remote: RemoteOptions,
    progress: &dyn Progress,
) -> Result<UploadReport, gguf::Error> {
    require_names(files)?;
    let client = Arc::new(Client::new(remote)?);
    let opened: Vec<_> =
        files.iter().map(|file| ReadFile::open(&file.path)).collect::<Result<_, _>>()?;
    let mut branch = Branch::open(client.clone(), repository, options.create)?;
    // A file of another length differs: no need to hash anything.
    let differs = |(file, opened): &(&UploadFile, &ReadFile)| {
        let entry = branch.entries.get(&file.name);
        entry.is_some_and(|entry| entry.size != opened.byte_len())
    };
    if options.existing == Existing::Refuse
        && let Some((file, _)) = files.iter().zip(&opened).find(differs)
    {
        return Err(exists(repository, &file.name));
    }
    let mut additions = Vec::new();
    for (file, opened) in files.iter().zip(&opened) {
        let sha256 = hash(&file.name, opened, progress)?;
        additions.push(Addition::new(&file.name, opened, sha256)?);
    }
    branch.compare(&additions, options.existing)?;
    let mut states = vec![UploadState::Unchanged; additions.len()];
    let changed = |branch: &Branch| -> Vec<usize> {
        (0..additions.len()).filter(|i| !branch.has(&additions[*i])).collect()
    };
    let mut left = changed(&branch);
    let modes = branch.modes(&left.iter().map(|i| &additions[*i]).collect::<Vec<_>>())?;
    left.retain(|i| {
        let is_ignored = modes.get(additions[*i].name).is_some_and(|mode| mode.is_ignored);
        if is_ignored {
            states[*i] = UploadState::Ignored;
        }
        !is_ignored
    });
    let mut is_large = vec![false; additions.len()];
    for i in &left {
        let hub_says = modes.get(additions[*i].name).is_some_and(|mode| mode.is_large);
        let len = additions[*i].file.byte_len();
        // The storage takes no empty files.
        is_large[*i] =
            len > 0 && (hub_says || len > MAX_REGULAR || gguf::is_gguf(additions[*i].name));
        states[*i] = UploadState::Sent;
    }
    let large: Vec<usize> = left.iter().copied().filter(|i| is_large[*i]).collect();
    send(&branch, &additions, &large, &mut states, options, progress)?;
    for (file, addition) in files.iter().zip(&additions) {
        if addition.file.state() != FileState::Unchanged {
            let what = "the file changed while it was uploaded; nothing was committed";
            return Err(gguf::Error::input("input-changed", &file.path, what, "upload it again"));
        }
    }
    let message = options.message.clone().unwrap_or_else(|| match left[..] {
        [one] => format!("Upload {}", additions[one].name),
        _ => format!("Upload {} files", left.len()),
    });
    let commit = branch.commit(&additions, &left, &is_large, &message, options.existing)?;
    let files = additions.into_iter().zip(states).map(|(addition, state)| UploadedFile {
        name: addition.name.to_owned(),
        bytes: addition.file.byte_len(),
        sha256: addition.sha256,
        state,
    });
    let files = files.collect();
    let url = commit.as_deref().map(|commit| branch.commit_url(commit));
    Ok(UploadReport { commit, url, files })
}

/// Sends the large files that the storage lacks.
fn send(
    branch: &Branch,
    additions: &[Addition<'_>],
    large: &[usize],
    states: &mut [UploadState],
    options: &UploadOptions,
    progress: &dyn Progress,
) -> Result<(), gguf::Error> {
    // Files with the same bytes are sent once.
    let mut digests = HashSet::new();
    let distinct: Vec<usize> =
        large.iter().copied().filter(|i| digests.insert(&additions[*i].sha256)).collect();
    for batch in distinct.chunks(lfs::BATCH) {
        let files: Vec<_> = batch
            .iter()
            .map(|i| lfs::LargeFile { file: additions[*i].file, sha256: &additions[*i].sha256 })
            .collect();
        let uploads = lfs::batch(&branch.client, &branch.repository, &files);
        let uploads = uploads.map_err(|fault| branch.failed(fault))?;
        for ((i, file), upload) in batch.iter().zip(&files).zip(uploads) {
            let place = format!("{} {}", branch.client.endpoint, branch.repository.name);
            let record = Record::new(options.records.as_ref(), &place, file.sha256);
            if upload.is_stored() {
                states[*i] = UploadState::Stored;
            } else {
                progress.begin(&format!("uploading {}", additions[*i].name), file.file.byte_len());
            }
            lfs::send(&branch.client, file, &upload, record, progress)?
                .map_err(|fault| branch.failed(fault))?;
        }
    }
    // Further files with the same bytes.
    let of_digest: HashMap<_, _> =
        distinct.iter().map(|i| (additions[*i].sha256.as_str(), *i)).collect();
    for i in large {
        let first = of_digest[additions[*i].sha256.as_str()];
        if first != *i {
            states[*i] = UploadState::Stored;
        }
    }
    Ok(())
}

fn hash(name: &str, file: &ReadFile, progress: &dyn Progress) -> Result<String, gguf::Error> {
    let len = file.byte_len();
    progress.begin(&format!("hashing {name}"), len);
    let (mut hasher, mut at) = (Sha256::new(), 0);
    let mut buffer = vec![0; usize::try_from(len).map_or(CHUNK, |len| len.min(CHUNK))];
    while at < len {
        let left = usize::try_from(len - at).map_or(CHUNK, |left| left.min(CHUNK));
        file.read_at(&mut buffer[..left], at)?;
        hasher.update(&buffer[..left]);
        at += left as u64;
        progress.step(left as u64)?;
    }
    Ok(hex(&hasher.finalize()))
}

/// Fails if a name is not a path in a repository, or is there twice.
fn require_names(files: &[UploadFile]) -> Result<(), gguf::Error> {
    let mut names = HashSet::new();
    let refused = |what: String| Err(gguf::Error::request("upload-refused", what, ""));
    for file in files {
        if !hub::is_safe_path(&file.name) || file.name.split('/').any(|part| part == ".git") {
            let name = file.name.escape_debug();
            return refused(format!("`{name}` is not a path within a repository"));
        }
        if !names.insert(&file.name) {
            return refused(format!("two files would be `{}` in the repository", file.name));
        }
    }
    match files.is_empty() {
        true => refused("there is no file to upload".into()),
        false => Ok(()),
    }
}

fn exists(repository: &Repository, name: &str) -> gguf::Error {
    let file = Repository { file: Some(name.to_owned()), ..repository.clone() };
    gguf::Error::Exists(file.to_string().into())
}

/// Returns the error for a fault of the hub.
fn failed(repository: &Repository, fault: Fault) -> gguf::Error {
    let place = Repository { file: None, ..repository.clone() }.to_string();
    gguf::Error::environment("write to", place.as_ref(), std::io::Error::other(fault))
}
