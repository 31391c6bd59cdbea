//! Objects as outputs: what their names mean, and what is under them already.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf_store::{Existing, FarOutput, FarPlace, Layout, Unfinished, unfinished_name};
use object_store::ObjectStoreExt;
use object_store::path::Path as Key;
use url::Url;

use super::store::{Store, explain, runtime, store, wait};
use super::upload::{Upload, part_len};
use crate::allowance::Allowance;
use crate::client::Client;
use crate::error::{Error, Fault};
use crate::location::{Location, shown};
use crate::options::Options;

/// Outputs whose name is that of an object: `s3://bucket/key`, `gs://bucket/key`, `az://container/blob`.
///
/// Keys are found as for reading. Nothing is asked of any store before an output goes there.
#[derive(Debug)]
pub struct Buckets {
    options: Options,
}

impl Buckets {
    /// Those that can be reached with these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// The bucket and the name in it.
    fn object(&self, target: &Path) -> Result<Object, gguf::Error> {
        let url = match target.to_str().map(Location::parse).transpose()? {
            Some(Location::Bucket(url)) if !url.path().ends_with('/') && !url.path().is_empty() => {
                url
            }
            _ => {
                let what = format!("{} is not the name of an object", target.display());
                let help = "name a bucket and a key, such as s3://bucket/model.gguf";
                return Err(gguf::Error::request("output-refused", what, help));
            }
        };
        let client = Arc::new(Client::new(self.options.clone())?);
        // Answers to uploads say little, and there are as many as parts.
        let allowance = Arc::new(Allowance::new(u64::MAX, "the store's answers have no end"));
        let store = store(&client, &url, &allowance).map_err(|error| match error {
            Error::Remote { place, fault } => {
                let fault = std::io::Error::other(fault);
                gguf::Error::environment("write", place.as_ref(), fault)
            }
            error => error.into(),
        })?;
        let wrong = |error: object_store::path::Error| {
            gguf::Error::request("output-refused", error.to_string(), "")
        };
        let key = Key::from_url_path(url.path()).map_err(wrong)?;
        let record = Object::record_of(&key).map_err(wrong)?;
        let target = target.to_owned();
        Ok(Object { store, key, record, url, target })
    }
}

impl FarPlace for Buckets {
    fn has(&self, target: &Path) -> bool {
        let location = target.to_str().map(Location::parse);
        matches!(location, Some(Ok(Location::Bucket(_))))
    }

    fn check(&self, target: &Path, existing: Existing) -> Result<(), gguf::Error> {
        self.object(target)?.check(existing)
    }

    fn create(
        &self,
        target: &Path,
        existing: Existing,
        layout: Layout,
        unfinished: &Unfinished,
    ) -> Result<Box<dyn FarOutput>, gguf::Error> {
        let object = self.object(target)?;
        object.check(existing)?;
        let part_len = part_len(layout.len);
        Ok(Box::new(Upload::begin(object, existing, layout, part_len, unfinished)?))
    }
}

/// An object that is to be, and where its record stands.
#[derive(Debug)]
pub(super) struct Object {
    pub store: Store,
    pub key: Key,
    pub record: Key,
    pub url: Url,
    /// As the user named it.
    pub target: PathBuf,
}

impl Object {
    /// Where the record of an unfinished object stands.
    pub fn record_of(key: &Key) -> Result<Key, object_store::path::Error> {
        let (folder, name) = key.as_ref().rsplit_once('/').unwrap_or(("", key.as_ref()));
        let name = unfinished_name(Path::new(name));
        Key::parse(format!("{folder}/{}", name.to_string_lossy()).trim_start_matches('/'))
    }

    pub fn ask<T: Send>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send,
    ) -> Result<T, gguf::Error> {
        let runtime = runtime().map_err(|error| self.failed(error.to_string()))?;
        wait(&runtime, request).map_err(|error| self.failed(explain(&error, &self.url)))
    }

    pub fn failed(&self, why: String) -> gguf::Error {
        let fault = std::io::Error::other(Fault::Store(why));
        gguf::Error::environment("write", shown(&self.url).as_ref(), fault)
    }

    pub fn check(&self, existing: Existing) -> Result<(), gguf::Error> {
        let found = self.ask(self.store.find(&self.key))?;
        match existing {
            Existing::Refuse if found.is_some() => Err(gguf::Error::Exists(self.target.clone())),
            _ => Ok(()),
        }
    }

    /// Removes an upload's parts, and its record. What cannot be removed is left: a later writer of the same object
    /// tries again, as long as the record is there.
    pub fn give_up(&self, upload: &str) {
        let id = upload.to_owned();
        let removed = self.ask(async {
            match self.store.uploads.abort_multipart(&self.key, &id).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            self.store.objects.delete(&self.record).await
        });
        drop(removed);
    }
}
