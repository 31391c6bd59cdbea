//! Digests of all that the bytes of an output depend on.

use gguf::{Error, write_header};
use sha2::{Digest, Sha256};

use crate::job::{Item, Job};
use crate::parallel;
use crate::tensor::Tensor;

/// Where an importance matrix was, as the user named it: it may be elsewhere on another machine.
const IMATRIX_FILE: &str = "quantize.imatrix.file";

/// Takes in the version of the encoders, the header of an output and the weights that guide its
/// encoders: all but the data that it is made of.
pub(super) fn plan<'i>(
    hasher: &mut Sha256,
    header: &[u8],
    items: impl IntoIterator<Item = &'i Item>,
) {
    let mut text = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    // Another version may encode otherwise.
    text(env!("CARGO_PKG_VERSION").as_bytes());
    text(header);
    for item in items {
        let weights = item.importance.as_deref().unwrap_or_default();
        text(&weights.iter().flat_map(|weight| weight.to_le_bytes()).collect::<Vec<_>>());
    }
}

impl Job {
    /// A digest by which parts of one piece of work know each other, 64 hexadecimal digits: of the
    /// whole output, wherever it is made and whichever of it are written.
    ///
    /// It is of the version of the encoders, the header, the importance weights, and of the first,
    /// the middle and the last row of each tensor as it is read: that tells models of one kind
    /// apart without reading all of them on each machine. It does not tell models apart that differ
    /// in a few other rows only.
    ///
    /// # Errors
    /// As [`Job::header`], and if a tensor cannot be read.
    pub fn fingerprint(&self) -> Result<String, Error> {
        let mut job = self.clone();
        job.metadata.remove(IMATRIX_FILE);
        let mut hasher = Sha256::new();
        plan(&mut hasher, &write_header(&job.header()?)?, &self.items);
        // What is far away takes its time to come.
        let sample = |i: usize| sample(&self.items[i].tensor);
        for digest in parallel::map(self.items.len(), sample)? {
            hasher.update(digest);
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A digest of the first, the middle and the last row.
fn sample(tensor: &Tensor) -> Result<[u8; 32], Error> {
    let mut hasher = Sha256::new();
    hasher.update(tensor.stored_type.to_string());
    let rows = if tensor.shape.row_len() > 0 { tensor.rows() } else { 0 };
    let (mut buffer, mut read) = (Vec::new(), None);
    for row in [0, rows / 2, rows.saturating_sub(1)] {
        // Short tensors have fewer.
        if row < rows && read.is_none_or(|before| before < row) {
            tensor.read_rows(row, 1, &mut buffer)?;
            hasher.update(&buffer);
            read = Some(row);
        }
    }
    Ok(hasher.finalize().into())
}
