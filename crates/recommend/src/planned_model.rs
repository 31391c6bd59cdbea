//! Models that exist as a header only.

use std::path::PathBuf;
use std::sync::Arc;

use gguf::{Error, Header, write_header};
use gguf_store::{Model, ModelFile, Source};

/// Returns a model with this header, whose tensor data cannot be read: a file that is planned, or not downloaded.
///
/// # Errors
/// If the header breaks the format.
pub fn planned_model(header: Header, path: PathBuf) -> Result<Model, Error> {
    let header_len = write_header(&header)?.len();
    let len = header.file_len(header_len)?;
    let source = Arc::new(NoData { len });
    Model::new(vec![ModelFile { path, header, data_start: header_len as u64, source }])
}

struct NoData {
    len: u64,
}

impl Source for NoData {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), Error> {
        Err(Error::request(
            "request-invalid",
            "the model is only planned, and has no data",
            "write it first",
        ))
    }
}
