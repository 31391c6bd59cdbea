//! Adds the file path to errors of computed tensors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;
use gguf_store::Source;

/// A source computed from a file.
pub(super) struct WithPath {
    path: PathBuf,
    source: Arc<dyn Source>,
}

impl WithPath {
    /// Wraps a source so that its errors name the file at `path`.
    pub fn source(path: &Path, source: Arc<dyn Source>) -> Arc<dyn Source> {
        Arc::new(Self { path: path.to_owned(), source })
    }
}

impl Source for WithPath {
    fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.source.read_at(buffer, offset).map_err(|error| error.in_file(&self.path))
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn identity(&self) -> Option<String> {
        self.source.identity()
    }

    fn as_slice(&self) -> Option<&[u8]> {
        self.source.as_slice()
    }
}
