//! PyTorch files: a zip archive with a pickle and one entry per storage, or, before PyTorch 1.6, a
//! sequence of pickles followed by the storages. Nothing in them is executed (`pickle.rs`), and
//! tensor data are not copied.

mod archive;
mod globals;
mod input;
mod legacy_format;
mod objects;
mod pickle;
mod state_dict;

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use gguf::Error;
use gguf_store::Source;
use input::Input;
use objects::Objects;

use super::raw::Raw;

/// Start and length of each storage, by key.
type Storages = HashMap<Rc<str>, (u64, u64)>;

/// A fault of a file, and advice.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// The pickle names a global that is neither tensor nor container.
    #[error("asks Python to call `{0}`")]
    Call(String),
    /// The pickle has an operation that no pickle of tensors needs.
    #[error("has a pickle with {0}")]
    Unknown(String),
    /// The file is corrupt.
    #[error("{0}")]
    Damaged(String),
    /// The file is valid, but cannot be converted.
    #[error("{0}")]
    Unsupported(String, &'static str),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
}

impl Fault {
    fn in_file(self, path: &Path) -> Error {
        let (code, help) = match self {
            Self::Read(error) => return error,
            Self::Call(_) => (
                "pytorch-object",
                "tensors need no such call, so nothing was loaded: do not open this file in Python \
                                 unless you trust its author; use a safetensors form of the model, or ask the author \
                                 to save the state dict alone",
            ),
            Self::Unknown(_) => (
                "pytorch-object",
                "save the state dict alone with torch.save and convert that file",
            ),
            Self::Damaged(_) => {
                ("pytorch-damaged", "the file is corrupt or truncated: download it again")
            }
            Self::Unsupported(_, help) => ("pytorch-unsupported", help),
        };
        Error::input(code, path, self.to_string(), help)
    }
}

/// Whether a file that begins with these bytes is a PyTorch file.
pub(super) fn begins_with(start: &[u8; 8]) -> bool {
    start.starts_with(b"PK") || legacy_format::begins_with(start)
}

/// Reads the tensors of a file, in the order of its state dict.
pub(super) fn tensors(
    path: &Path,
    source: &Arc<dyn Source>,
    file: usize,
) -> Result<Vec<Raw>, Error> {
    let read = || {
        let mut start = [0; 8];
        source.read_at(&mut start, 0)?;
        let (objects, root, storages) = if start.starts_with(b"PK") {
            let archive = archive::Archive::open(source.clone())?;
            let (start, len) = archive.pickle()?;
            let mut objects = Objects::default();
            let mut input = Input::new(source.clone(), start, start + len);
            let root = pickle::load(&mut input, &mut objects)?;
            let storages = archive.storages(&objects)?;
            (objects, root, storages)
        } else {
            legacy_format::load(source.clone())?
        };
        state_dict::tensors(&objects, root, &storages, source, file)
    };
    read().map_err(|fault: Fault| fault.in_file(path))
}
