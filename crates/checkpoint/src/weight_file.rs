//! Sources of a checkpoint's bytes.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use gguf_store::Source;

use super::with_path::WithPath;

/// A source of weights: a file, or a tensor computed from a file.
#[derive(Clone)]
pub struct WeightFile {
    /// Path of the file, for messages.
    pub path: PathBuf,
    /// Bytes of the source.
    pub source: Arc<dyn Source>,
}

impl fmt::Debug for WeightFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeightFile").field(&self.path).finish()
    }
}

impl WeightFile {
    /// Wraps a tensor computed from the file at `path`.
    pub(super) fn computed(path: PathBuf, source: Arc<dyn Source>) -> Self {
        let source = WithPath::source(&path, source);
        Self { path, source }
    }
}
