//! What is known of an upload that is not complete: a small object beside its target.
//!
//! Its name is that of unfinished work here, `.NAME.unfinished.gguf-kit-part`. It says which upload it is, so that
//! the next writer of the same target can go on with it or remove its parts, which nobody sees and
//! the bucket's owner pays for.

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use serde::{Deserialize, Serialize};

use super::store::Store;

/// The longest record that is read: one of ten thousand parts takes a tenth.
const LONGEST: u64 = 8 << 20;

/// An upload, and which of its parts are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The name that the store gave to the upload.
    pub upload: String,
    /// Tells the work from all other.
    pub work: Option<u64>,
    /// Bytes of the whole object.
    pub len: u64,
    /// Bytes of each part but the last.
    pub part_len: u64,
    /// What the store calls each part that is there.
    pub parts: Vec<Option<String>>,
}

impl Record {
    /// The one at `path`, if there is one that can be read. What is no record is none: it may be from a
    /// later version of this program.
    pub async fn read(store: &Store, path: &Path) -> object_store::Result<Option<Self>> {
        let bytes = match store.find(path).await? {
            Some(meta) if meta.size <= LONGEST => store.objects.get(path).await?.bytes().await?,
            _ => return Ok(None),
        };
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Writes it in the place of an earlier one.
    pub async fn write(&self, store: &Store, path: &Path) -> object_store::Result<()> {
        // It has no maps and no numbers that JSON lacks.
        let text = serde_json::to_vec(self).unwrap_or_default();
        store.objects.put(path, PutPayload::from(text)).await.map(drop)
    }

    /// Whether `other` is about the same bytes, cut in the same way.
    pub fn is_same_work(&self, other: &Self) -> bool {
        self.work.is_some()
            && (self.work, self.len, self.part_len, self.parts.len())
                == (other.work, other.len, other.part_len, other.parts.len())
    }
}
