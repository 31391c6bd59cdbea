//! Digests of everything that determines the bytes of an output.

use gguf::{Error, write_header};
use sha2::{Digest, Sha256};

use crate::job::{Item, Job};
use crate::parallel;
use crate::tensor::Tensor;

/// Path of the importance matrix as the user gave it, which may differ between machines.
const IMATRIX_FILE: &str = "quantize.imatrix.file";

/// Hashes the encoder version, the header of an output and the importance weights: everything
/// except the tensor data.
pub(super) fn plan<'i>(
    hasher: &mut Sha256,
    header: &[u8],
    items: impl IntoIterator<Item = &'i Item>,
) {
    let mut text = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    // Another version may encode differently.
    text(env!("CARGO_PKG_VERSION").as_bytes());
    text(header);
    for item in items {
        let weights = item.importance.as_deref().unwrap_or_default();
        text(&weights.iter().flat_map(|weight| weight.to_le_bytes()).collect::<Vec<_>>());
    }
}

impl Job {
    /// Returns a digest of 64 hexadecimal digits that identifies the output to which a part
    /// belongs. It covers the whole output, wherever and in whatever parts it is written.
    ///
    /// The digest covers the encoder version, the header, the importance weights, and the first,
    /// middle and last row of each source tensor. That distinguishes models of the same
    /// architecture without reading all weights on each machine, but not models that differ only in
    /// other rows.
    ///
    /// # Errors
    /// Returns the errors of [`Job::header`], or an error if a tensor cannot be read.
    pub fn fingerprint(&self) -> Result<String, Error> {
        let mut job = self.clone();
        job.metadata.remove(IMATRIX_FILE);
        let mut hasher = Sha256::new();
        plan(&mut hasher, &write_header(&job.header()?)?, &self.items);
        // Remote sources have latency, so samples are read in parallel.
        let sample = |i: usize| sample(&self.items[i].tensor);
        for digest in parallel::map(self.items.len(), sample)? {
            hasher.update(digest);
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Hashes the first, the middle and the last row.
fn sample(tensor: &Tensor) -> Result<[u8; 32], Error> {
    let mut hasher = Sha256::new();
    hasher.update(tensor.stored_type.to_string());
    let (rows, row_len) = tensor.copied_rows();
    let rows = if row_len > 0 { rows } else { 0 };
    let (mut buffer, mut read) = (Vec::new(), None);
    for row in [0, rows / 2, rows.saturating_sub(1)] {
        // Short tensors have fewer than three rows.
        if row < rows && read.is_none_or(|before| before < row) {
            tensor.read_rows(row, 1, &mut buffer)?;
            hasher.update(&buffer);
            read = Some(row);
        }
    }
    Ok(hasher.finalize().into())
}
