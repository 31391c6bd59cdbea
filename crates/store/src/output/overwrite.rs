//! What an output may replace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;

use super::far::{FarOutput, FarPlace, Layout, Unfinished};

/// What becomes of a file that has the name of an output already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the output is refused.
    #[default]
    Refuse,
    /// The output replaces it when it is complete.
    Replace,
}

/// What an output may replace: nothing, or whatever is there; in no case one of the inputs.
///
/// An input is known by what it is, not by its name: a link to it, or another name of the same
/// file, is refused too.
#[derive(Clone, Debug, Default)]
pub struct Overwrite {
    existing: Existing,
    inputs: Vec<FileId>,
    /// Inputs that are on no machine of ours, as they were named.
    far_inputs: Vec<PathBuf>,
    far: Option<Arc<dyn FarPlace>>,
}

impl Overwrite {
    /// For an output of no inputs, or of inputs that it is to replace: an edit in place.
    pub fn new(existing: Existing) -> Self {
        Self { existing, ..Self::default() }
    }

    /// Lets outputs go to another place too.
    #[must_use]
    pub fn reaching(mut self, far: Arc<dyn FarPlace>) -> Self {
        self.far = Some(far);
        self
    }

    /// Keeps these files from being replaced. A directory stands for the files in it and in the
    /// directories in it: it is a checkpoint, and a GGUF there is none of its files. A far file is
    /// known by its name. Names of nothing are passed over.
    #[must_use]
    pub fn sparing<P: AsRef<Path>>(mut self, inputs: impl IntoIterator<Item = P>) -> Self {
        for input in inputs {
            if is_address(input.as_ref()) {
                self.far_inputs.push(input.as_ref().to_owned());
            } else if input.as_ref().is_dir() {
                self.add_directory(input.as_ref(), 1);
            } else {
                self.inputs.extend(FileId::of(input.as_ref()));
            }
        }
        self
    }

    fn add_directory(&mut self, directory: &Path, depth: u32) {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if depth > 0 => self.add_directory(&path, depth - 1),
                true => {}
                false if path.extension().is_some_and(|end| end == "gguf") => {}
                false => self.inputs.extend(FileId::of(&path)),
            }
        }
    }

    /// Says before any work whether `target` may be written.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is something that is not to be replaced. [`Error::Caller`] if it
    /// is an input, a directory, a device, or a link to nothing: a file in the place of the link
    /// would not be what the user meant. [`Error::Environment`] if it must not be written, for
    /// root too.
    pub fn check(&self, target: &Path) -> Result<(), Error> {
        match self.place_of(target) {
            Some(far) => {
                self.refuse_input(target)?;
                far.check(target, self.existing)
            }
            None => self.resolve(target).map(drop),
        }
    }

    /// Whether an output of this name goes elsewhere.
    pub fn is_far(&self, target: &Path) -> bool {
        self.place_of(target).is_some()
    }

    /// Begins an output elsewhere.
    ///
    /// # Errors
    /// As [`Overwrite::check`]; [`Error::Caller`] if the name is that of no place that is known.
    pub fn create_far(
        &self,
        target: &Path,
        layout: Layout,
        unfinished: &Unfinished,
    ) -> Result<Box<dyn FarOutput>, Error> {
        self.refuse_input(target)?;
        match self.place_of(target) {
            Some(far) => far.create(target, self.existing, layout, unfinished),
            None => Err(unreachable_place(target)),
        }
    }

    /// The place elsewhere that a name belongs to.
    fn place_of(&self, target: &Path) -> Option<&dyn FarPlace> {
        self.far.as_deref().filter(|far| far.has(target))
    }

    /// As [`Overwrite::check`]; the file to write, where `target` is a link to it.
    pub(super) fn resolve(&self, target: &Path) -> Result<PathBuf, Error> {
        let shown = target.display();
        let caller = |what: String| Err(Error::request("output-refused", what, ""));
        if target.as_os_str() == "-" {
            let what =
                "files are not written to a stream: they get their name when they are complete";
            return Err(Error::request("output-refused", what, "name a file, such as ./-"));
        }
        if is_address(target) {
            return Err(unreachable_place(target));
        }
        if target.as_os_str().as_encoded_bytes().last().is_some_and(|&end| end == b'/') {
            return caller(format!("{shown} is the name of a directory: name a file"));
        }
        let link = match target.symlink_metadata() {
            Ok(metadata) => metadata.is_symlink(),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => {
                return Ok(target.to_owned());
            }
            Err(fault) => return Err(Error::environment("write", target, fault)),
        };
        let (resolved, existing) = match (target.canonicalize(), target.metadata()) {
            (Ok(resolved), Ok(existing)) => (resolved, existing),
            _ if link => {
                return caller(format!(
                    "{shown} is a link to what is not there: remove it, or name the file itself"
                ));
            }
            (Err(fault), _) | (_, Err(fault)) => {
                return Err(Error::environment("write", target, fault));
            }
        };
        if !existing.is_file() {
            return caller(format!("{shown} is no regular file"));
        }
        self.refuse_input(target)?;
        if self.existing == Existing::Refuse {
            return Err(Error::Exists(target.to_owned()));
        }
        // A rename would get around what the permissions say, and root around them anyway.
        if existing.permissions().readonly() || !may_write(&resolved) {
            let denied = std::io::ErrorKind::PermissionDenied.into();
            return Err(Error::environment("replace", target, denied));
        }
        Ok(resolved)
    }

    /// Refuses one of the inputs.
    pub(crate) fn refuse_input(&self, target: &Path) -> Result<(), Error> {
        let is_near = FileId::of(target).is_some_and(|id| self.inputs.contains(&id));
        if is_near || self.far_inputs.iter().any(|input| input == target) {
            let what = format!("{} is an input: name another output", target.display());
            return Err(Error::request("output-is-input", what, ""));
        }
        Ok(())
    }

    pub(super) fn existing(&self) -> Existing {
        self.existing
    }
}

/// Whether a name has a scheme, such as `s3://`.
fn is_address(name: &Path) -> bool {
    let scheme = name.to_str().and_then(|name| Some(name.split_once("://")?.0));
    scheme.is_some_and(|scheme| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

fn unreachable_place(target: &Path) -> Error {
    let what = format!("{} cannot be written: it is no path on this machine", target.display());
    let help = "models can be written to s3://, gs:// and az:// by quantize, convert, split and merge; \
                all else to paths";
    Error::request("output-refused", what, help)
}

#[cfg(unix)]
fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn may_write(_: &Path) -> bool {
    true
}

/// Which file something is, under whatever name: device and number on it.
#[cfg(unix)]
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

#[cfg(unix)]
impl FileId {
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = path.metadata().ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

/// Which file something is: its path without links.
#[cfg(not(unix))]
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileId(PathBuf);

#[cfg(not(unix))]
impl FileId {
    fn of(path: &Path) -> Option<Self> {
        path.canonicalize().ok().map(Self)
    }
}
