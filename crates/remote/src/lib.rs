//! GGUF files wherever they are: on disk, behind HTTP, on the Hugging Face hub, in object stores; to the
//! last they can be written too.
//!
//! [`open`] takes a user's word and gives a [`gguf_store::Source`]. Nothing is downloaded but what is
//! asked for, nothing is kept on disk; requests that fail in passing are tried again.
//!
//! | word | meaning |
//! |------|---------|
//! | `dir/model.gguf`, `dir` | a file, or the only model in a directory |
//! | `https://host/model.gguf` | a file on a web server that answers range requests |
//! | `hf:org/repo`, `hf:org/repo:Q4_K_M`, `hf:org/repo:dir/model.gguf@revision` | a file on the hub |
//! | `s3://bucket/key`, `gs://bucket/key`, `az://container/blob` | an object; with a final `/`, the only model there |
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let far = gguf_remote::open("hf:unsloth/Llama-3.2-1B-Instruct-GGUF:Q4_K_M")?;
//! let limits = gguf::Limits::default();
//! let bytes = gguf_store::fetch_header(&*far.source, limits)?;
//! let model = gguf::Gguf::read_header(&bytes, far.source.byte_len(), limits)?;
//! println!("{} tensors, {} bytes read", model.tensors().len(), far.transferred.bytes());
//! # Ok(())
//! # }
//! ```

mod allowance;
mod blocks;
#[cfg(feature = "buckets")]
mod bucket;
mod cache;
mod client;
#[cfg(feature = "buckets")]
mod credentials;
mod error;
mod http;
mod hub;
mod location;
mod options;
mod pick;
mod redirect;
mod repository;
mod retry;
mod version;

use std::path::Path;
use std::sync::Arc;

use gguf_store::{LocalFile, ShardSet, Source};
use url::Url;

pub use crate::blocks::LastBlocks;
#[cfg(feature = "buckets")]
pub use crate::bucket::Buckets;
pub use crate::cache::{Cache, Kept};
use crate::client::Client;
pub use crate::client::Transferred;
pub use crate::error::{Error, Fault};
pub use crate::location::{Location, Repository};
pub use crate::options::{HfToken, Options};
pub use crate::repository::Files;

/// A file that can be read.
pub struct Opened {
    /// Its bytes.
    pub source: Arc<dyn Source>,
    /// Its name without what leads to it, for messages and for the naming convention.
    pub name: String,
    /// Where it was found: of a folder or repository the file, of a branch the commit, so that
    /// what is beside it can be opened in the same version.
    pub location: Location,
    /// What reading it has cost so far; stays 0 for a file on this machine.
    pub transferred: Transferred,
}

/// Opens the file that a user names, with [`Options::from_env`].
///
/// # Errors
/// [`Error`], each with what to do next.
pub fn open(word: &str) -> Result<Opened, Error> {
    open_with(&Location::parse(word)?, Options::from_env())
}

/// Opens the file at a location.
///
/// # Errors
/// [`Error::Choice`], or of a folder on this machine [`Error::Local`], if there is not exactly one
/// model; otherwise what the disk or the server says.
pub fn open_with(location: &Location, options: Options) -> Result<Opened, Error> {
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
        Location::Bucket(url) => bucket(Client::new(options)?, url.clone()),
    }
}

fn local(path: &Path) -> Result<Opened, Error> {
    let mut path = path.to_owned();
    if path.is_dir() {
        path.clone_from(&ShardSet::find(&path)?.paths()[0]);
    }
    let source = Arc::new(LocalFile::open(&path)?);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Opened {
        source,
        name: name.unwrap_or_default(),
        location: Location::Path(path),
        transferred: Transferred::default(),
    })
}

fn http(client: Client, url: &Url, mut location: Location) -> Result<Opened, Error> {
    let transferred = client.transferred.clone();
    let source = http::HttpFile::open(Arc::new(client), url.clone())?;
    if let (Location::Hub(repository), Some(commit)) = (&mut location, source.commit()) {
        repository.revision = commit.to_owned();
    }
    Ok(Opened { source: Arc::new(source), name: last_segment(url), location, transferred })
}

#[cfg(feature = "buckets")]
fn bucket(client: Client, url: Url) -> Result<Opened, Error> {
    let transferred = client.transferred.clone();
    let source = bucket::BucketFile::open(Arc::new(client), url)?;
    let name = source.key().rsplit('/').next().unwrap_or_default().to_owned();
    let location = Location::Bucket(source.url().clone());
    Ok(Opened { source: Arc::new(source), name, location, transferred })
}

#[cfg(not(feature = "buckets"))]
fn bucket(client: Client, url: Url) -> Result<Opened, Error> {
    Err(client.error(&url, Fault::Store("this program was built without object stores".into())))
}

/// The last part of a URL's path, with escapes such as `%20` resolved.
fn last_segment(url: &Url) -> String {
    let segment = url.path_segments().and_then(|mut path| path.next_back()).unwrap_or_default();
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}
