//! Encoder of headers.
//!
//! [`read`](crate::read) is the inverse, with the same functions in the same order.

use crate::encoding::Encoding;
use crate::error::Error;
use crate::finding::Finding;
use crate::header::Header;
use crate::metadata::Metadata;
use crate::read::MAGIC;
use crate::tensor::TensorInfo;

/// Encodes a header, padded to the start of the data section.
///
/// # Errors
/// [`Error::File`] if a count does not fit the 32 bits of version 1.
pub fn write_header(header: &Header) -> Result<Vec<u8>, Error> {
    let encoding = header.encoding();
    let mut out = Vec::new();
    magic(&mut out, header.version(), encoding);
    let body = encoding
        .push_count(&mut out, header.tensors().len() as u64)
        .and_then(|()| encoding.push_count(&mut out, header.metadata().len() as u64))
        .and_then(|()| entries(&mut out, header.metadata(), encoding))
        .and_then(|()| directory(&mut out, header.tensors(), encoding));
    body.ok_or_else(|| {
        let message = "a length does not fit the 32 bits of version 1";
        Error::from(Finding::error("version-too-narrow", message).help("write version 3"))
    })?;
    // Aligning a length in memory does not overflow.
    let end = header.alignment().align_up(out.len() as u64).unwrap_or(out.len() as u64);
    out.resize(end as usize, 0);
    Ok(out)
}

fn magic(out: &mut Vec<u8>, version: u32, encoding: Encoding) {
    out.extend_from_slice(&MAGIC);
    encoding.push(out, version.to_le_bytes());
}

fn entries(out: &mut Vec<u8>, metadata: &Metadata, encoding: Encoding) -> Option<()> {
    metadata.iter().try_for_each(|(key, value)| {
        encoding.push_text(out, key.as_bytes())?;
        encoding.push(out, value.value_type().id().to_le_bytes());
        value.write(out, encoding)
    })
}

fn directory(out: &mut Vec<u8>, tensors: &[TensorInfo], encoding: Encoding) -> Option<()> {
    tensors.iter().try_for_each(|tensor| {
        encoding.push_text(out, tensor.name.as_bytes())?;
        encoding.push(out, (tensor.shape.len() as u32).to_le_bytes());
        tensor.shape.iter().try_for_each(|&dim| encoding.push_count(out, dim))?;
        encoding.push(out, tensor.tensor_type.id().to_le_bytes());
        encoding.push(out, tensor.offset.to_le_bytes());
        Some(())
    })
}
