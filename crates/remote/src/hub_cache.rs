//! Models of the Hub, stored where the Python package `huggingface_hub` stores them.
//!
//! Layout (`huggingface_hub`, "Understand caching"): in `models--OWNER--NAME`, `blobs/ETAG` are the files,
//! `snapshots/COMMIT/PATH` link to them, and `refs/REVISION` holds the commit of a branch or tag. The ETag of a large file is
//! its SHA-256, with which a download is compared.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gguf::NameShard;
use gguf_store::digest::hex;
use gguf_store::{Progress, Source, is_same_file};
use sha2::{Digest, Sha256};

use crate::client::Client;
use crate::error::{Error, Fault};
use crate::http::HttpFile;
use crate::hub;
use crate::location::Repository;
use crate::options::{RemoteOptions, hub_home};
use crate::select::select;

/// Bytes per read of a download.
const CHUNK: usize = 8 << 20;

/// Longest time for a connection if the model is stored.
const STORED_TIMEOUT: Duration = Duration::from_secs(5);

/// The cache directory.
#[derive(Clone, Debug)]
pub struct HubCache {
    directory: PathBuf,
    /// Whether only stored models are used.
    is_offline: bool,
}

/// A stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// `organisation/name`.
    pub repository: String,
    /// Commit.
    pub commit: String,
    /// Path in the repository.
    pub file: String,
    /// Path on the disk.
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
}

impl HubCache {
    /// Returns the cache of `huggingface_hub`: `HF_HUB_CACHE`, `HF_HOME/hub`, `XDG_CACHE_HOME/huggingface/hub` or
    /// `~/.cache/huggingface/hub`; `None` without a home directory. With `HF_HUB_OFFLINE` only stored models are used.
    pub fn from_env() -> Option<Self> {
        let variable =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = variable("HF_HUB_CACHE")
            .or_else(|| variable("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(hub_home()?.join("hub")))?;
        let offline = std::env::var("HF_HUB_OFFLINE").unwrap_or_default().to_uppercase();
        let is_offline = ["1", "ON", "YES", "TRUE"].contains(&offline.trim());
        Some(Self { directory, is_offline })
    }

    /// Returns the cache in a directory, which need not exist.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory, is_offline: false }
    }

    /// Returns the path of a model: the first shard if it is split. Downloads what is not stored; without a connection, a
    /// stored model of the same revision is enough.
    ///
    /// # Errors
    /// Errors of the server and the disk; `download-damaged` if a file does not have its digest.
    pub fn model(
        &self,
        repository: &Repository,
        options: RemoteOptions,
        progress: &dyn Progress,
    ) -> Result<PathBuf, Error> {
        require_safe(&repository.name)?;
        require_safe(&repository.revision)?;
        let stored = self.stored(repository);
        if self.is_offline {
            return stored.ok_or_else(|| {
                let what =
                    format!("hf:{} is not stored, and HF_HUB_OFFLINE is set", repository.name);
                let help = "unset it to download the model; `gguf list` lists what is stored";
                gguf::Error::request("model-missing", what, help).into()
            });
        }
        let client = Arc::new(Client::new(options.clone())?);
        // Nobody waits long for a server that is not needed.
        let asked = match stored {
            Some(_) => {
                let connect_timeout = options.connect_timeout.min(STORED_TIMEOUT);
                Arc::new(Client::new(RemoteOptions { attempts: 1, connect_timeout, ..options })?)
            }
            None => client.clone(),
        };
        let file = match hub::find(&asked, repository) {
            Ok(file) => file,
            Err(error) if is_offline(&error) => return stored.ok_or(error),
            Err(error) => return Err(error),
        };
        let mut revision = repository.revision.clone();
        let mut first = None;
        for name in shards(&file) {
            let stored = self.file(&client, &repository.name, &revision, &name, progress);
            let (path, commit) = match stored {
                Ok(stored) => stored,
                Err(error) if first.is_none() && is_offline(&error) => {
                    return self.stored(repository).ok_or(error);
                }
                Err(error) => return Err(error),
            };
            if first.is_none() {
                self.set_revision(repository, &commit)?;
            }
            // All shards come from one commit.
            revision = commit;
            first.get_or_insert(path);
        }
        first.ok_or_else(|| {
            let what = format!("`{}` has no file", repository.name);
            gguf::Error::request("model-missing", what, "name a file of the repository").into()
        })
    }

    /// Returns the path of a stored model without asking the server.
    fn stored(&self, repository: &Repository) -> Option<PathBuf> {
        let folder = self.folder(&repository.name);
        let commit = match is_commit(&repository.revision) {
            true => repository.revision.clone(),
            false => fs::read_to_string(folder.join("refs").join(&repository.revision)).ok()?,
        };
        let snapshot = folder.join("snapshots").join(commit.trim());
        let mut names = Vec::new();
        list_files(&snapshot, "", &mut names);
        let part = repository.file.as_deref().unwrap_or_default();
        let name = match names.iter().find(|name| *name == part) {
            Some(name) => name.clone(),
            None => select(repository.name.clone(), names, part).ok()?,
        };
        let path = snapshot.join(name);
        path.is_file().then_some(path)
    }

    /// Returns all stored GGUF files, sorted.
    pub fn files(&self) -> Vec<StoredFile> {
        let mut found = Vec::new();
        for folder in entries(&self.directory) {
            let Some(repository) =
                folder.strip_prefix("models--").map(|name| name.replacen("--", "/", 1))
            else {
                continue;
            };
            let snapshots = self.directory.join(&folder).join("snapshots");
            for commit in entries(&snapshots) {
                let snapshot = snapshots.join(&commit);
                let mut names = Vec::new();
                list_files(&snapshot, "", &mut names);
                for file in names.into_iter().filter(|name| gguf::is_gguf(name)) {
                    let path = snapshot.join(&file);
                    let Ok(status) = path.metadata() else { continue };
                    let (repository, commit) = (repository.clone(), commit.clone());
                    found.push(StoredFile { repository, commit, file, path, bytes: status.len() });
                }
            }
        }
        found.sort_by(|a, b| (&a.repository, &a.file).cmp(&(&b.repository, &b.file)));
        found
    }

    /// Removes stored files: their links, and the blobs to which no other link leads. Returns the bytes that became free.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self, files: &[StoredFile]) -> Result<u64, Error> {
        let mut freed = 0;
        for stored in files {
            let is_stored = |path: &Path| is_same_file(path, &stored.path);
            let blobs = self.folder(&stored.repository).join("blobs");
            let blob =
                entries(&blobs).iter().map(|name| blobs.join(name)).find(|blob| is_stored(blob));
            let others = self.files();
            let is_used =
                others.iter().any(|other| other.path != stored.path && is_stored(&other.path));
            let failed = |fault| gguf::Error::environment("remove", &stored.path, fault);
            fs::remove_file(&stored.path).map_err(failed)?;
            if !is_used {
                blob.map_or(Ok(()), fs::remove_file).map_err(failed)?;
                freed += stored.bytes;
            }
        }
        Ok(freed)
    }

    /// Returns the path of a file and its commit; downloads it if it is not stored.
    fn file(
        &self,
        client: &Arc<Client>,
        repository: &str,
        revision: &str,
        name: &str,
        progress: &dyn Progress,
    ) -> Result<(PathBuf, String), Error> {
        require_safe(name)?;
        let folder = self.folder(repository);
        if is_commit(revision) {
            let path = folder.join("snapshots").join(revision).join(name);
            if path.is_file() {
                return Ok((path, revision.to_owned()));
            }
        }
        let url = hub::file_url(client, repository, revision, name);
        let remote = HttpFile::open(client.clone(), url.clone())?;
        let Some(commit) = remote.commit().map(str::to_owned) else {
            let fault = Fault::Response("it does not state the commit of the file".into());
            return Err(client.error(&url, fault));
        };
        let path = folder.join("snapshots").join(&commit).join(name);
        if path.is_file() {
            return Ok((path, commit));
        }
        let etag = remote.etag().filter(|etag| is_name(etag)).map(str::to_owned);
        let etag = etag.unwrap_or_else(|| hex(&Sha256::digest(format!("{commit}/{name}"))));
        let blob = folder.join("blobs").join(&etag);
        if !blob.is_file() {
            download(&remote, name, &etag, &blob, progress)?;
        }
        link(&blob, &path, name)?;
        Ok((path, commit))
    }

    fn folder(&self, repository: &str) -> PathBuf {
        self.directory.join(format!("models--{}", repository.replace('/', "--")))
    }

    /// Records the commit of a branch or tag.
    fn set_revision(&self, repository: &Repository, commit: &str) -> Result<(), Error> {
        if is_commit(&repository.revision) {
            return Ok(());
        }
        let path = self.folder(&repository.name).join("refs").join(&repository.revision);
        if fs::read_to_string(&path).is_ok_and(|before| before == commit) {
            return Ok(());
        }
        let failed = |fault| gguf::Error::environment("write", &path, fault);
        create_parent(&path)?;
        fs::write(&path, commit).map_err(failed)?;
        Ok(())
    }
}

/// Downloads a file to `blob`, continuing what an interrupted download left beside it.
pub(crate) fn download(
    remote: &HttpFile,
    name: &str,
    etag: &str,
    blob: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let part = blob.with_file_name(format!("{etag}.incomplete"));
    let failed = |fault| gguf::Error::environment("write", &part, fault);
    create_parent(&part)?;
    let open = OpenOptions::new().read(true).append(true).create(true).open(&part);
    let mut file = open.map_err(failed)?;
    // Another process may download the same file.
    file.lock().map_err(failed)?;
    if blob.is_file() {
        return Ok(());
    }
    let len = remote.byte_len();
    let mut hasher = Sha256::new();
    let mut done = file.metadata().map_err(failed)?.len();
    if done > len {
        file.set_len(0).map_err(failed)?;
        done = 0;
    }
    file.rewind().map_err(failed)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    progress.begin(&format!("downloading {name}"), len);
    progress.step(done)?;
    while done < len {
        let count = usize::try_from(len - done).map_or(CHUNK, |left| left.min(CHUNK));
        let chunk = &mut buffer[..count];
        remote.read_at(chunk, done)?;
        file.write_all(chunk).map_err(failed)?;
        hasher.update(&*chunk);
        done += count as u64;
        progress.step(count as u64)?;
    }
    file.sync_all().map_err(failed)?;
    let digest = hex(&hasher.finalize());
    if etag.len() == digest.len() && etag != digest {
        fs::remove_file(&part).map_err(failed)?;
        let what = format!("{name} was damaged on its way: its SHA-256 is {digest}, not {etag}");
        return Err(gguf::Error::request("download-damaged", what, "download it again").into());
    }
    fs::rename(&part, blob).map_err(failed)?;
    Ok(())
}

/// Makes a link in a snapshot; a second name of the file where there are no links, or its only name.
fn link(blob: &Path, path: &Path, name: &str) -> Result<(), Error> {
    create_parent(path)?;
    let failed = |fault| gguf::Error::environment("link", path, fault);
    // A link that leads nowhere.
    let _ = fs::remove_file(path);
    #[cfg(unix)]
    {
        // From the folder of the file to that of the repository.
        let up = "../".repeat(2 + name.matches('/').count());
        let blob = blob.file_name().unwrap_or_default().to_string_lossy();
        std::os::unix::fs::symlink(format!("{up}blobs/{blob}"), path).map_err(failed)?;
    }
    #[cfg(not(unix))]
    let _ = name;
    #[cfg(not(unix))]
    fs::hard_link(blob, path).or_else(|_| fs::rename(blob, path)).map_err(failed)?;
    Ok(())
}

fn create_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)
        .map_err(|fault| gguf::Error::environment("create", parent, fault).into())
}

/// Returns the names of all shards of the model to which a file belongs.
fn shards(file: &str) -> Vec<String> {
    let (folder, name) = match file.rsplit_once('/') {
        Some((folder, name)) => (format!("{folder}/"), name),
        None => (String::new(), file),
    };
    match NameShard::strip(name) {
        Some((prefix, shard)) => (1..=shard.count)
            .map(|number| {
                folder.clone() + &NameShard { number, count: shard.count }.file_name(prefix)
            })
            .collect(),
        None => vec![file.to_owned()],
    }
}

/// Appends the paths of the files below a directory.
fn list_files(directory: &Path, prefix: &str, names: &mut Vec<String>) {
    for name in entries(directory) {
        let path = directory.join(&name);
        match path.is_dir() {
            true => list_files(&path, &format!("{prefix}{name}/"), names),
            false => names.push(format!("{prefix}{name}")),
        }
    }
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Fails if a path could leave its directory.
fn require_safe(path: &str) -> Result<(), Error> {
    match hub::is_safe_path(path) {
        true => Ok(()),
        false => {
            let word = path.escape_debug().to_string();
            Err(Error::Location { word, reason: "it is not a path within a repository".into() })
        }
    }
}

fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether an ETag can be the name of a file.
fn is_name(etag: &str) -> bool {
    !etag.is_empty()
        && etag.len() <= 128
        && etag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether the server did not answer.
fn is_offline(error: &Error) -> bool {
    matches!(error, Error::Remote { fault: Fault::Connection(_) | Fault::Unreachable(_), .. })
}
