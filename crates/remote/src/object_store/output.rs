//! Object stores as destinations of outputs.

use std::path::Path;
use std::sync::Arc;

use gguf_store::{Existing, OutputLayout, RemoteOutput, RemoteStore, ResumeOptions};
use object_store::path::Path as Key;

use super::object::Object;
use super::store::store;
use super::upload::{Upload, part_len};
use crate::budget::ByteBudget;
use crate::client::Client;
use crate::error::Error;
use crate::location::Location;
use crate::options::RemoteOptions;

/// Remote outputs in object stores: `s3://bucket/key`, `gs://bucket/key`, `az://container/blob`.
///
/// Credentials are found as for reading. No store is contacted before an output is checked or
/// created.
#[derive(Debug)]
pub struct ObjectStores {
    options: RemoteOptions,
}

impl ObjectStores {
    /// Creates outputs with these options.
    pub fn new(options: RemoteOptions) -> Self {
        Self { options }
    }

    /// Resolves a URL to its store and object key.
    fn object(&self, target: &Path) -> Result<Object, gguf::Error> {
        let url = match target.to_str().map(Location::parse).transpose()? {
            Some(Location::Object(url)) if !url.path().ends_with('/') && !url.path().is_empty() => {
                url
            }
            _ => {
                let what = format!("{} is not the URL of an object", target.display());
                let help = "name a bucket and a key, for example s3://bucket/model.gguf";
                return Err(gguf::Error::request("output-refused", what, help));
            }
        };
        let client = Arc::new(Client::new(self.options.clone())?);
        // Responses to uploads are short, one per part.
        let budget = Arc::new(ByteBudget::new(u64::MAX, "the responses are too long"));
        let store = store(&client, &url, &budget).map_err(|error| match error {
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
        let record = Object::record_key(&key).map_err(wrong)?;
        let target = target.to_owned();
        Ok(Object { store, key, record, url, target })
    }
}

impl RemoteStore for ObjectStores {
    fn accepts(&self, target: &Path) -> bool {
        let location = target.to_str().map(Location::parse);
        matches!(location, Some(Ok(Location::Object(_))))
    }

    fn check(&self, target: &Path, existing: Existing) -> Result<(), gguf::Error> {
        self.object(target)?.check(existing)
    }

    fn create(
        &self,
        target: &Path,
        existing: Existing,
        layout: OutputLayout,
        resume: &ResumeOptions,
    ) -> Result<Box<dyn RemoteOutput>, gguf::Error> {
        let object = self.object(target)?;
        let part_len = part_len(layout.len);
        Ok(Box::new(Upload::begin(object, existing, layout, part_len, resume)?))
    }
}
