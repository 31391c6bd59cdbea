//! Objects in S3, Google Cloud Storage and Azure Blob Storage.
//!
//! `object_store` signs the requests; the agent of this crate sends them.

mod http;
mod object;
mod output;
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

pub use self::output::ObjectStores;
use self::store::{Store, explain, runtime, store, wait};
use crate::budget::ByteBudget;
use crate::client::Client;
use crate::error::{Error, Fault};
use crate::location::redact_url;
use crate::select::select;
use crate::version::strong;

/// Maximum number of bytes per request.
const PIECE: usize = 8 << 20;

/// Maximum length of a listing, all pages together.
const MAX_LISTING: u64 = 64 << 20;

/// An object in an object store, opened for reading.
pub(crate) struct ObjectFile {
    store: Store,
    runtime: Runtime,
    path: Path,
    url: Url,
    len: u64,
    etag: Option<String>,
    /// URL as redact_url in messages.
    name: PathBuf,
}

impl ObjectFile {
    /// Requests the length of the object at `url`, or of the only model below it if the URL ends
    /// with `/`.
    pub fn open(client: Arc<Client>, url: Url) -> Result<Self, Error> {
        let fail = |fault| client.error(&url, fault);
        let failed = |error: object_store::Error| match error {
            object_store::Error::NotFound { .. } => fail(Fault::Missing),
            error => fail(Fault::Store(explain(&error, &url))),
        };
        let runtime = runtime().map_err(|error| fail(Fault::Store(error.to_string())))?;
        let listing = Arc::new(ByteBudget::new(MAX_LISTING, "the listing is too long"));
        let store = store(&client, &url, &listing)?;
        let wrong = |error: object_store::path::Error| fail(Fault::Store(error.to_string()));
        let mut path = Path::from_url_path(url.path()).map_err(wrong)?;
        if matches!(url.path(), "" | "/") || url.path().ends_with('/') {
            let listing = wait(&runtime, store.objects.list_with_delimiter(Some(&path)));
            let objects = listing.map_err(failed)?.objects.into_iter();
            let names = objects.map(|object| object.location.into()).collect();
            path = Path::parse(select(redact_url(&url), names, "")?).map_err(wrong)?;
        }
        let meta = wait(&runtime, store.objects.head(&path)).map_err(failed)?;
        let url = with_key(url, path.as_ref());
        let name = redact_url(&url).into();
        Ok(Self { store, runtime, path, url, len: meta.size, etag: meta.e_tag, name })
    }

    /// Returns the object key.
    pub fn key(&self) -> &str {
        self.path.as_ref()
    }

    /// Returns the URL of the object, also if the URL of a prefix was opened.
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
        // Not every store supports conditional requests.
        if len != self.len || etag != self.etag {
            return Err(Fault::Changed);
        }
        if bytes.len() != buffer.len() {
            return Err(Fault::Response("its length differs from that of the range".into()));
        }
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}

/// Returns the URL of another object in the same bucket.
fn with_key(mut url: Url, key: &str) -> Url {
    // Fails only for URLs that cannot have a path, which object URLs are not.
    if let Ok(mut path) = url.path_segments_mut() {
        path.clear().extend(key.split('/'));
    }
    url
}

impl gguf_store::Source for ObjectFile {
    /// Returns `None` if the store provides no strong ETag.
    fn identity(&self) -> Option<String> {
        let etag = strong(self.etag.as_deref())?;
        Some(format!("{} {} {etag}", redact_url(&self.url), self.len))
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
