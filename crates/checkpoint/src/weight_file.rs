//! Where the bytes of a checkpoint are.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use gguf_store::Source;

use super::named::Named;

/// A place where weights come from: a file, or what is computed from a part of one.
#[derive(Clone)]
pub struct WeightFile {
    /// The file's path, for messages.
    pub path: PathBuf,
    /// The bytes.
    pub source: Arc<dyn Source>,
}

impl fmt::Debug for WeightFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeightFile").field(&self.path).finish()
    }
}

impl WeightFile {
    /// What is computed from the file at `path`.
    pub(super) fn computed(path: PathBuf, source: Arc<dyn Source>) -> Self {
        let source = Named::source(&path, source);
        Self { path, source }
    }
}
