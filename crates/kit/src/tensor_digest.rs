//! Digest of the tensors of a model, by which results of a measurement are matched with files.

use gguf::Error;
use gguf_pipeline::{Item, Job};
use gguf_quant::CodecError;
use gguf_store::Model;
use gguf_store::digest::hex;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

/// Returns the digest of the tensors that a job writes, as 64 hexadecimal digits: of their names, types and shapes, and of
/// the first, middle and last row of each. Metadata does not count, so that a file keeps its digest when its metadata is
/// edited.
///
/// # Errors
/// If a tensor cannot be read or encoded.
pub fn of_job(job: &Job) -> Result<String, Error> {
    let sampled = |item| Ok((item, sample(item)?));
    let mut samples: Vec<(&Item, _)> =
        job.items.par_iter().map(sampled).collect::<Result<_, Error>>()?;
    // Shards of a model can have another order.
    samples.sort_by(|(a, _), (b, _)| a.tensor.name.cmp(&b.tensor.name));
    let mut hasher = Sha256::new();
    for (item, sample) in samples {
        let name = &item.tensor.name;
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(item.target.to_string());
        hasher.update(format!("{:?}", item.tensor.shape));
        hasher.update(sample);
    }
    Ok(hex(&hasher.finalize()))
}

/// Returns the digest of the tensors of a model, as [`of_job`].
///
/// # Errors
/// If a tensor cannot be read.
pub fn of_model(model: &Model) -> Result<String, Error> {
    of_job(&Job::copy(model))
}

/// Hashes the first, the middle and the last row as they are written.
fn sample(item: &Item) -> Result<[u8; 32], Error> {
    let tensor = &item.tensor;
    // Data of unknown layout have a row for each byte.
    let (rows, row_len) = match tensor.opaque_len() {
        Some(len) => (len, 1),
        None => (tensor.rows(), tensor.shape.row_len()),
    };
    let mut numbers = vec![0, rows / 2, rows.saturating_sub(1)];
    numbers.dedup();
    let mut hasher = Sha256::new();
    for row in numbers.into_iter().filter(|&row| row < rows && row_len > 0) {
        hasher.update(written_row(item, row)?);
    }
    Ok(hasher.finalize().into())
}

/// Returns a row as the job writes it.
fn written_row(item: &Item, row: u64) -> Result<Vec<u8>, Error> {
    let (tensor, target) = (&item.tensor, item.target);
    let failed = |fault: CodecError| Error::weights(&tensor.name, fault.to_string());
    let mut stored = Vec::new();
    tensor.read_rows(row, 1, &mut stored)?;
    let from = tensor.stored_type;
    if from == target {
        return Ok(stored);
    }
    let row_len = tensor.shape.row_len();
    let mut written = vec![0; target.byte_len(&[row_len]).unwrap_or(0) as usize];
    if gguf_quant::lossless::is_possible(from, target) {
        gguf_quant::lossless::convert(from, &stored, target, &mut written).map_err(failed)?;
        return Ok(written);
    }
    let mut values = vec![0.0; row_len as usize];
    gguf_quant::decode_row(from, &stored, &mut values).map_err(failed)?;
    item.encode(target, row, &values, &mut written).map_err(failed)?;
    Ok(written)
}
