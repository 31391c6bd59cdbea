//! Objects in S3, Google Cloud Storage and Azure Blob Storage.
//!
//! `object_store` knows how each of them signs requests; the requests themselves go through our agent.

mod http;
mod object;
mod record;
mod store;
mod upload;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt};
use tokio::runtime::Runtime;
use url::Url;

pub use self::object::Buckets;
use self::store::{Store, explain, runtime, store, wait};
use crate::allowance::Allowance;
use crate::client::Client;
use crate::error::{Error, Fault};
use crate::location::shown;
use crate::pick::pick;
use crate::version::strong;

/// The most that one request asks for.
const PIECE: usize = 8 << 20;

/// Bytes of all pages of a listing.
const LONGEST_LISTING: u64 = 64 << 20;

/// An object in a bucket.
pub(crate) struct BucketFile {
    store: Store,
    runtime: Runtime,
    path: Path,
    url: Url,
    len: u64,
    etag: Option<String>,
    /// Its URL, as messages have it.
    name: PathBuf,
}

impl BucketFile {
    /// Asks for the length of the object at `url`, or of the only model below it if it ends
    /// with `/`.
    pub fn open(client: Arc<Client>, url: Url) -> Result<Self, Error> {
        let fail = |fault| client.error(&url, fault);
        let failed = |error: object_store::Error| match error {
            object_store::Error::NotFound { .. } => fail(Fault::Missing),
            error => fail(Fault::Store(explain(&error, &url))),
        };
        let runtime = runtime().map_err(|error| fail(Fault::Store(error.to_string())))?;
        let listing = Arc::new(Allowance::new(LONGEST_LISTING, "the listing has no end"));
        let store = store(&client, &url, &listing)?;
        let wrong = |error: object_store::path::Error| fail(Fault::Store(error.to_string()));
        let mut path = Path::from_url_path(url.path()).map_err(wrong)?;
        if matches!(url.path(), "" | "/") || url.path().ends_with('/') {
            let listing = wait(&runtime, store.objects.list_with_delimiter(Some(&path)));
            let objects = listing.map_err(failed)?.objects.into_iter();
            let names = objects.map(|object| object.location.into()).collect();
            path = Path::parse(pick(shown(&url), names, "")?).map_err(wrong)?;
        }
        let meta = wait(&runtime, store.objects.head(&path)).map_err(failed)?;
        let url = of_key(url, path.as_ref());
        let name = shown(&url).into();
        Ok(Self { store, runtime, path, url, len: meta.size, etag: meta.e_tag, name })
    }

    /// The key of the object.
    pub fn key(&self) -> &str {
        self.path.as_ref()
    }

    /// Its URL, also if that of a folder was asked for.
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn piece(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(offset..offset + buffer.len() as u64)),
            if_match: strong(self.etag.as_deref()),
            ..GetOptions::default()
        };
        let fetch = async {
            let result = self.store.objects.get_opts(&self.path, options).await?;
            let (len, etag) = (result.meta.size, result.meta.e_tag.clone());
            Ok((len, etag, result.bytes().await?))
        };
        let (len, etag, bytes) = wait(&self.runtime, fetch).map_err(|error| match error {
            object_store::Error::Precondition { .. } => Fault::Changed,
            error => Fault::Store(error.to_string()),
        })?;
        // Not every store knows conditions.
        if len != self.len || etag != self.etag {
            return Err(Fault::Changed);
        }
        if bytes.len() != buffer.len() {
            return Err(Fault::Answer("its length is not that of the range".into()));
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}

/// The URL of an object in the bucket of another.
fn of_key(mut url: Url, key: &str) -> Url {
    // Fails for URLs that cannot have a path; those of buckets can.
    if let Ok(mut path) = url.path_segments_mut() {
        path.clear().extend(key.split('/'));
    }
    url
}

impl gguf_store::Source for BucketFile {
    /// `None` if the store gives no ETag that stands for bytes.
    fn identity(&self) -> Option<String> {
        let etag = strong(self.etag.as_deref())?;
        Some(format!("{} {} {etag}", shown(&self.url), self.len))
    }

    fn file(&self) -> Option<&std::path::Path> {
        Some(&self.name)
    }

    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], mut offset: u64) -> Result<(), gguf::Error> {
        let fail = |source| gguf::Error::read(&self.name, source);
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(fail(ErrorKind::UnexpectedEof.into()));
        }
        for piece in buffer.chunks_mut(PIECE) {
            self.piece(piece, offset).map_err(|fault| fail(std::io::Error::other(fault)))?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}
