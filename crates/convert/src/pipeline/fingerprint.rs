//! Digests of all that the bytes of an output depend on.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gguf::write_header;
use sha2::{Digest, Sha256};

use super::{Item, Job};
use crate::Error;
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
        let weights = item.weights.as_deref().unwrap_or_default();
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
    pub fn fingerprint(&self, threads: NonZeroUsize) -> Result<String, Error> {
        let mut job = self.clone();
        job.metadata.remove(IMATRIX_FILE);
        let mut hasher = Sha256::new();
        plan(&mut hasher, &write_header(&job.header()?)?, &self.items);
        for digest in samples(&self.items, threads)? {
            hasher.update(digest);
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A digest of some rows of each item, on several threads: what is far away takes its time to come.
fn samples(items: &[Item], threads: NonZeroUsize) -> Result<Vec<[u8; 32]>, Error> {
    let next = AtomicUsize::new(0);
    let digests = Mutex::new(vec![[0; 32]; items.len()]);
    let work = || -> Result<(), Error> {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return Ok(()) };
            let digest = sample(&item.tensor)?;
            // A poisoned lock means that a thread has panicked, which the scope passes on.
            if let Ok(mut digests) = digests.lock() {
                digests[i] = digest;
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads.get().min(items.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    Ok(digests.into_inner().unwrap_or_default())
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
