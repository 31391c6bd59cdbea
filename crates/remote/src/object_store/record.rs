//! Upload record: a small object beside the target of an incomplete upload.
//!
//! Its name is that of a local unfinished file, `.NAME.unfinished.gguf-kit-part`. It holds the
//! upload id, so that the next writer of the same target can resume the upload or remove its parts,
//! which are invisible but billed to the owner of the bucket.

use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};
use serde::{Deserialize, Serialize};

use super::store::Store;

/// Maximum length of a record; one with ten thousand parts takes a tenth of that.
const MAX_LEN: u64 = 8 << 20;

/// State of a multipart upload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Upload id assigned by the store.
    pub upload: String,
    /// Fingerprint of the job; `None` if it cannot be resumed.
    #[serde(rename = "work")]
    pub job: Option<u64>,
    /// Length of the object in bytes.
    pub len: u64,
    /// Length of each part except the last.
    pub part_len: u64,
    /// Content id of each uploaded part, assigned by the store.
    pub parts: Vec<Option<String>>,
}

impl Record {
    /// Reads the record at `path`; `None` if there is none or it is not readable, for example from
    /// a later version of this program.
    pub async fn read(store: &Store, path: &Path) -> object_store::Result<Option<Self>> {
        let bytes = match store.find(path).await? {
            Some(meta) if meta.size <= MAX_LEN => store.objects.get(path).await?.bytes().await?,
            _ => return Ok(None),
        };
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Writes the record, replacing an earlier one.
    pub async fn write(&self, store: &Store, path: &Path) -> object_store::Result<()> {
        // Cannot fail: a record has no maps and no numbers that JSON lacks.
        let text = serde_json::to_vec(self).unwrap_or_default();
        store.objects.put(path, PutPayload::from(text)).await.map(drop)
    }

    /// Whether all parts are uploaded.
    pub fn is_complete(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    /// Whether an object can be the result of the upload: it has the length, and, where the store counts parts in the ETag
    /// (S3: `"digest-count"`), as many parts.
    pub fn may_have_made(&self, object: &ObjectMeta) -> bool {
        let tag = object.e_tag.as_deref().unwrap_or_default().trim_matches('"');
        let count = tag.rsplit_once('-').and_then(|(digest, count)| {
            let is_digest = digest.len() == 32 && digest.bytes().all(|b| b.is_ascii_hexdigit());
            is_digest.then(|| count.parse::<usize>().ok()).flatten()
        });
        object.size == self.len && count.is_none_or(|count| count == self.parts.len())
    }

    /// Whether `other` is an upload of the same job with the same part boundaries.
    pub fn is_same_job(&self, other: &Self) -> bool {
        self.job.is_some()
            && (self.job, self.len, self.part_len, self.parts.len())
                == (other.job, other.len, other.part_len, other.parts.len())
    }
}
