//! Rules for what an output may replace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;

use super::device_names;
use super::remote::{OutputLayout, RemoteOutput, RemoteStore, ResumeOptions};
use crate::file_id::FileId;
use crate::paths;

/// Behavior if a file with the name of an output exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and refuse the output.
    #[default]
    Refuse,
    /// Replace it when the output is complete.
    Replace,
}

/// Rules for what an output may replace: nothing or an existing file, but never an input.
///
/// Inputs are compared by file identity, not by name: a link to an input, or another name of the
/// same file, is refused too.
#[derive(Clone, Debug, Default)]
pub struct Overwrite {
    existing: Existing,
    inputs: Vec<FileId>,
    /// URLs of remote inputs.
    remote_inputs: Vec<PathBuf>,
    remote: Option<Arc<dyn RemoteStore>>,
}

impl Overwrite {
    /// Creates rules without inputs, or for an in-place edit that replaces its input.
    pub fn new(existing: Existing) -> Self {
        Self { existing, ..Self::default() }
    }

    /// Adds a destination for remote outputs.
    #[must_use]
    pub fn with_remote(mut self, remote: Arc<dyn RemoteStore>) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Protects these inputs from being replaced. For a directory, such as a checkpoint, this
    /// protects the files in it and in its subdirectories, except GGUF files. Remote inputs are
    /// compared by URL. Missing files are ignored.
    #[must_use]
    pub fn protecting<P: AsRef<Path>>(mut self, inputs: impl IntoIterator<Item = P>) -> Self {
        for input in inputs {
            if is_url(input.as_ref()) {
                self.remote_inputs.push(input.as_ref().to_owned());
            } else if input.as_ref().is_dir() {
                self.add_directory(input.as_ref(), 1);
            } else {
                self.inputs.extend(FileId::at(input.as_ref()).ok());
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
                false => self.inputs.extend(FileId::at(&path).ok()),
            }
        }
    }

    /// Checks before any work whether `target` may be written.
    ///
    /// # Errors
    /// [`Error::Exists`] if an existing file must not be replaced. [`Error::Caller`] if the target
    /// is an input, a directory, a device, or a dangling link, which a new file would silently
    /// replace. [`Error::Environment`] if the target is not writable, also for root.
    pub fn check(&self, target: &Path) -> Result<(), Error> {
        match self.remote_store(target) {
            Some(remote) => {
                self.refuse_input(target)?;
                remote.check(target, self.existing)
            }
            None => self.resolve(target).map(drop),
        }
    }

    /// Whether an output to `target` is remote.
    pub fn is_remote(&self, target: &Path) -> bool {
        self.remote_store(target).is_some()
    }

    /// Begins a remote output.
    ///
    /// # Errors
    /// As [`Overwrite::check`]; [`Error::Caller`] if no store accepts the URL.
    pub fn create_remote(
        &self,
        target: &Path,
        layout: OutputLayout,
        resume: &ResumeOptions,
    ) -> Result<Box<dyn RemoteOutput>, Error> {
        self.refuse_input(target)?;
        match self.remote_store(target) {
            Some(remote) => remote.create(target, self.existing, layout, resume),
            None => Err(unsupported_url(target)),
        }
    }

    /// Returns the remote store that accepts `target`.
    fn remote_store(&self, target: &Path) -> Option<&dyn RemoteStore> {
        self.remote.as_deref().filter(|remote| remote.accepts(target))
    }

    /// Checks as [`Overwrite::check`] and returns the path to write, with a link resolved.
    pub(super) fn resolve(&self, target: &Path) -> Result<PathBuf, Error> {
        let shown = target.display();
        let caller = |what: String| Err(Error::request("output-refused", what, ""));
        if target.as_os_str() == "-" {
            let what = "cannot write to a stream: an output gets its name when it is complete";
            return Err(Error::request("output-refused", what, "name a file, for example ./-"));
        }
        if is_url(target) {
            return Err(unsupported_url(target));
        }
        let last = target.as_os_str().as_encoded_bytes().last();
        if last.is_some_and(|&end| std::path::is_separator(end.into())) {
            return caller(format!("{shown} is the name of a directory: name a file"));
        }
        if cfg!(windows)
            && let Some(reason) = device_names::refusal(target)
        {
            return caller(format!("{shown} {reason}: use another name"));
        }
        let link = match target.symlink_metadata() {
            Ok(metadata) => metadata.is_symlink(),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => {
                return Ok(target.to_owned());
            }
            Err(fault) => return Err(Error::environment("write", target, fault)),
        };
        let (resolved, existing) = match (paths::resolve(target), target.metadata()) {
            (Ok(resolved), Ok(existing)) => (resolved, existing),
            _ if link => {
                return caller(format!(
                    "{shown} is a dangling link: remove it, or name the file itself"
                ));
            }
            (Err(fault), _) | (_, Err(fault)) => {
                return Err(Error::environment("write", target, fault));
            }
        };
        if !existing.is_file() {
            return caller(format!("{shown} is not a regular file"));
        }
        self.refuse_input(target)?;
        if self.existing == Existing::Refuse {
            return Err(Error::Exists(target.to_owned()));
        }
        // A rename would bypass the permissions, and root bypasses them anyway.
        if existing.permissions().readonly() || !may_write(&resolved) {
            let denied = std::io::ErrorKind::PermissionDenied.into();
            return Err(Error::environment("replace", target, denied));
        }
        Ok(resolved)
    }

    /// Refuses a target that is an input.
    pub(crate) fn refuse_input(&self, target: &Path) -> Result<(), Error> {
        let is_local = FileId::at(target).is_ok_and(|id| self.inputs.contains(&id));
        if is_local || self.remote_inputs.iter().any(|input| input == target) {
            let what = format!("{} is an input: name another output", target.display());
            return Err(Error::request("output-is-input", what, ""));
        }
        Ok(())
    }

    pub(super) fn existing(&self) -> Existing {
        self.existing
    }
}

/// Whether a name has a URL scheme, such as `s3://`, or is in a repository of the Hugging Face Hub.
fn is_url(name: &Path) -> bool {
    if name.to_str().is_some_and(|name| name.starts_with("hf:")) {
        return true;
    }
    let scheme = name.to_str().and_then(|name| Some(name.split_once("://")?.0));
    scheme.is_some_and(|scheme| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

fn unsupported_url(target: &Path) -> Error {
    let what = format!("{} cannot be written: it is not a local path", target.display());
    let help = "quantize, convert, split and merge can write to s3://, gs:// and az://, quantize and convert also to \
                hf:; everything else needs a local path";
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
