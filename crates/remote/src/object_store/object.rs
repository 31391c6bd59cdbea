//! An object to be written: requests to its store, existence checks, cleanup.

use std::path::{Path, PathBuf};

use gguf_store::{Existing, unfinished_name};
use object_store::ObjectStoreExt;
use object_store::multipart::PartId;
use object_store::path::Path as Key;
use url::Url;

use super::record::Record;
use super::store::{Store, explain, runtime, wait};
use crate::error::Fault;
use crate::location::redact_url;

/// An object to be written, and the key of its upload record.
#[derive(Debug)]
pub(super) struct Object {
    pub store: Store,
    pub key: Key,
    pub record: Key,
    pub url: Url,
    /// URL as given by the user.
    pub target: PathBuf,
}

impl Object {
    /// Returns the key of the upload record of an object.
    pub fn record_key(key: &Key) -> Result<Key, object_store::path::Error> {
        let (folder, name) = key.as_ref().rsplit_once('/').unwrap_or(("", key.as_ref()));
        let name = unfinished_name(Path::new(name));
        Key::parse(format!("{folder}/{}", name.to_string_lossy()).trim_start_matches('/'))
    }

    pub fn request<T: Send>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send,
    ) -> Result<T, gguf::Error> {
        let runtime = runtime().map_err(|error| self.failed(error.to_string()))?;
        wait(&runtime, request).map_err(|error| self.failed(explain(&error, &self.url)))
    }

    pub fn failed(&self, reason: String) -> gguf::Error {
        let fault = std::io::Error::other(Fault::Store(reason));
        gguf::Error::environment("write", redact_url(&self.url).as_ref(), fault)
    }

    pub fn check(&self, existing: Existing) -> Result<(), gguf::Error> {
        let found = self.request(self.store.find(&self.key))?;
        match existing {
            Existing::Refuse if found.is_some() => Err(gguf::Error::Exists(self.target.clone())),
            _ => Ok(()),
        }
    }

    /// Whether the existing object is what an earlier run of the same job has completed: the job's record stands beside it
    /// with all parts, and its length is that of the job.
    pub fn is_result_of(&self, job: &Record) -> Result<bool, gguf::Error> {
        let record = self.request(Record::read(&self.store, &self.record))?;
        let is_complete =
            record.is_some_and(|record| record.is_same_job(job) && record.is_complete());
        let object = self.request(self.store.find(&self.key))?;
        Ok(is_complete && object.is_some_and(|object| job.may_have_made(&object)))
    }

    /// Puts the parts of an upload together; returns whether the upload existed. An earlier run that was stopped before it
    /// removed the record may have completed it.
    pub fn complete(&self, upload: &str, parts: Vec<PartId>) -> Result<bool, gguf::Error> {
        self.request(async {
            match self.store.uploads.complete_multipart(&self.key, &upload.to_owned(), parts).await
            {
                Ok(_) => Ok(true),
                Err(object_store::Error::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Removes the parts of an upload and its record. Errors are ignored: a later writer of the
    /// same object tries again as long as the record exists.
    pub fn abort(&self, upload: &str) {
        let id = upload.to_owned();
        let removed = self.request(async {
            match self.store.uploads.abort_multipart(&self.key, &id).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            self.store.objects.delete(&self.record).await
        });
        drop(removed);
    }
}
