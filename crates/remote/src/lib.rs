//! Local and remote GGUF files: HTTP, the Hugging Face Hub and object stores. Object stores can be
//! written too, and files uploaded to the hub.
//!
//! [`open`] parses a location and returns a [`gguf_store::Source`]. It downloads only the requested
//! ranges and keeps nothing on disk; transient errors are retried.
//!
//! | location | meaning |
//! |------|---------|
//! | `dir/model.gguf`, `dir` | a local file, or the only model in a directory |
//! | `https://host/model.gguf` | a file on a web server with range requests |
//! | `hf:org/repo`, `hf:org/repo:Q4_K_M`, `hf:org/repo:dir/model.gguf@revision` | a file on the hub |
//! | `ollama:llama3.2`, `ollama:llama3.2:1b` | a model in the store of Ollama, `~/.ollama/models` |
//! | `s3://bucket/key`, `gs://bucket/key`, `az://container/blob` | an object; with a trailing `/`,
//! the only model below that prefix |
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let opened = gguf_remote::open("hf:unsloth/Llama-3.2-1B-Instruct-GGUF:Q4_K_M")?;
//! let limits = gguf::Limits::default();
//! let bytes = gguf_store::fetch_header(&*opened.source, limits)?;
//! let model = gguf::Gguf::read_header(&bytes, opened.source.byte_len(), limits)?;
//! println!("{} tensors, {} bytes read", model.tensors().len(), opened.transferred.bytes());
//! # Ok(())
//! # }
//! ```

mod block_cache;
mod budget;
mod cache;
mod client;
#[cfg(feature = "object-stores")]
mod credentials;
mod error;
mod http;
mod hub;
mod hub_cache;
mod hub_upload;
mod lm_studio;
mod location;
#[cfg(feature = "object-stores")]
mod object_store;
mod ollama;
mod ollama_registry;
mod options;
mod redirect;
mod repair;
mod repository;
mod retry;
mod select;
mod version;

use std::path::Path;
use std::sync::Arc;

use gguf_store::{LocalFile, ShardSet, Source};
use url::Url;

pub use crate::block_cache::BlockCache;
pub use crate::cache::{Cache, CacheUsage};
use crate::client::Client;
pub use crate::client::{FailedAttempt, Transferred};
pub use crate::error::{Error, Fault};
pub use crate::hub_cache::{HubCache, StoredFile};
pub use crate::hub_upload::{
    UploadFile, UploadOptions, UploadReport, UploadState, UploadedFile, Visibility, prepare_upload,
    upload, upload_directory,
};
pub use crate::lm_studio::lm_studio_files;
pub use crate::location::{Location, Repository, redact};
#[cfg(feature = "object-stores")]
pub use crate::object_store::ObjectStores;
pub use crate::ollama::{OllamaLayer, OllamaModel, OllamaName, OllamaStore};
pub use crate::options::{HfToken, RemoteOptions};
pub use crate::repair::{CopyReport, CopyState, RemoteDigest, RepairOptions, compare, repair};
pub use crate::repository::RepositoryFiles;

/// An open file.
pub struct OpenFile {
    /// Bytes of the file.
    pub source: Arc<dyn Source>,
    /// File name, for messages and for the naming convention.
    pub name: String,
    /// Resolved location: the file in a directory or repository, the commit of a branch. Files
    /// beside it can be opened in the same version.
    pub location: Location,
    /// Network traffic so far; 0 for a local file.
    pub transferred: Transferred,
}

/// Opens the file at a location, with [`RemoteOptions::from_env`].
///
/// # Errors
/// [`Error`], with advice.
pub fn open(word: &str) -> Result<OpenFile, Error> {
    open_with(&Location::parse(word)?, RemoteOptions::from_env())
}

/// Opens the file at a location.
///
/// # Errors
/// [`Error::SelectModel`], or [`Error::Local`] for a local directory, if there is not exactly one model;
/// otherwise errors of the disk or the server.
pub fn open_with(location: &Location, options: RemoteOptions) -> Result<OpenFile, Error> {
    match location {
        Location::Path(path) => local(path),
        Location::Http(url) => http(Client::new(options)?, url, location.clone()),
        Location::Hub(repository) => {
            let client = Client::new(options)?;
            let file = hub::find(&client, repository)?;
            let url = hub::file_url(&client, &repository.name, &repository.revision, &file);
            let found = Repository { file: Some(file), ..repository.clone() };
            http(client, &url, Location::Hub(found))
        }
        Location::Object(url) => object(Client::new(options)?, url.clone()),
    }
}

fn local(path: &Path) -> Result<OpenFile, Error> {
    let mut path = path.to_owned();
    if path.is_dir() {
        path.clone_from(&ShardSet::find(&path)?.paths()[0]);
    }
    let source = Arc::new(LocalFile::open(&path)?);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(OpenFile {
        source,
        name: name.unwrap_or_default(),
        location: Location::Path(path),
        transferred: Transferred::default(),
    })
}

fn http(client: Client, url: &Url, mut location: Location) -> Result<OpenFile, Error> {
    let transferred = client.transferred.clone();
    let source = http::HttpFile::open(Arc::new(client), url.clone())?;
    if let (Location::Hub(repository), Some(commit)) = (&mut location, source.commit()) {
        repository.revision = commit.to_owned();
    }
    Ok(OpenFile { source: Arc::new(source), name: last_segment(url), location, transferred })
}

#[cfg(feature = "object-stores")]
fn object(client: Client, url: Url) -> Result<OpenFile, Error> {
    let transferred = client.transferred.clone();
    let source = object_store::ObjectFile::open(Arc::new(client), url)?;
    let name = source.key().rsplit('/').next().unwrap_or_default().to_owned();
    let location = Location::Object(source.url().clone());
    Ok(OpenFile { source: Arc::new(source), name, location, transferred })
}

#[cfg(not(feature = "object-stores"))]
fn object(client: Client, url: Url) -> Result<OpenFile, Error> {
    Err(client.error(&url, Fault::Store("this program was built without object stores".into())))
}

/// Returns the last segment of a URL's path, percent-decoded.
fn last_segment(url: &Url) -> String {
    let segment = url.path_segments().and_then(|mut path| path.next_back()).unwrap_or_default();
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}
