//! PyTorch files: a zip archive with a pickle and one entry per storage, or, before PyTorch 1.6, a
//! run of pickles followed by the storages. Nothing in them is executed (`pickle.rs`), and tensor
//! data stay where they are.

mod archive;
mod globals;
mod input;
mod objects;
mod pickle;
mod state_dict;
mod stream;

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use gguf::Error;
use gguf_store::Source;
use input::Input;
use objects::Objects;

use super::raw::Raw;

/// Where the bytes of storages are: first byte and number of bytes, by key.
type Storages = HashMap<Rc<str>, (u64, u64)>;

/// What is wrong with a file, and what to do about it.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// The pickle names something that is neither tensor nor container.
    #[error("asks Python to call `{0}`")]
    Call(String),
    /// The pickle does what no pickle of tensors does.
    #[error("has a pickle with {0}")]
    Unknown(String),
    /// The bytes do not make sense.
    #[error("{0}")]
    Damaged(String),
    /// They do, but cannot be converted.
    #[error("{0}")]
    Unsupported(String, &'static str),
    /// The bytes cannot be read.
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
                 unless you trust its maker; take a safetensors form of the model, or let its maker \
                 save the state dict alone",
            ),
            Self::Unknown(_) => {
                ("pytorch-object", "save the state dict alone with torch.save and convert that")
            }
            Self::Damaged(_) => {
                ("pytorch-damaged", "the file is damaged or cut off: download it again")
            }
            Self::Unsupported(_, help) => ("pytorch-unsupported", help),
        };
        Error::input(code, path, self.to_string(), help)
    }
}

/// Whether a file that begins with these bytes is for this module.
pub(super) fn begins_with(start: &[u8; 8]) -> bool {
    start.starts_with(b"PK") || stream::begins_with(start)
}

/// The tensors of a file, in the order of its state dict.
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
            stream::load(source.clone())?
        };
        state_dict::tensors(&objects, root, &storages, source, file)
    };
    read().map_err(|fault: Fault| fault.in_file(path))
}
