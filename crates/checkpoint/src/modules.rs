//! The modules that `sentence-transformers` runs one after the other: the model, a pooling, matrices.

use std::path::{Path, PathBuf};

use gguf::Error;
use serde_json::Value;

use super::json;

/// The list of modules in a checkpoint directory.
pub const FILE: &str = "modules.json";

/// A module of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The file with the list.
    list: PathBuf,
    class: String,
    folder: String,
}

impl Module {
    /// The modules of the checkpoint in `dir`: none if there is no list.
    ///
    /// # Errors
    /// If the list is no JSON.
    pub fn read(dir: &Path) -> Result<Vec<Self>, Error> {
        let path = dir.join(FILE);
        let list = json::read_optional(&path)?.unwrap_or_default();
        Ok(Self::listed(&list, &path))
    }

    /// The modules of a list, which came from the file at `path`.
    pub fn listed(list: &Value, path: &Path) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let module = |module: &Value| Self {
            list: path.to_owned(),
            class: text(&module["type"]),
            folder: text(&module["path"]),
        };
        list.as_array().into_iter().flatten().map(module).collect()
    }

    /// Whether its class is one of this kind, such as `Pooling`.
    pub fn is(&self, kind: &str) -> bool {
        self.class.ends_with(kind)
    }

    /// Whether it is a pooling or a matrix: what a conversion reads, beside the model itself.
    pub fn stands_behind(&self) -> bool {
        self.is("Pooling") || self.is("Dense")
    }

    /// The folder with its files, within the checkpoint directory.
    ///
    /// # Errors
    /// If that is no plain name: a path from a file must not lead out of the directory.
    pub fn folder(&self) -> Result<&str, Error> {
        if Path::new(&self.folder).file_name().is_some_and(|name| name == &*self.folder) {
            return Ok(&self.folder);
        }
        let what = format!("the path of the module `{}` is `{}`", self.class, self.folder);
        Err(Error::input("config-field", &self.list, what, "correct it"))
    }
}
