//! Modules of `sentence-transformers`, which run in sequence: the model, pooling, dense layers.

use std::path::{Path, PathBuf};

use gguf::Error;
use serde_json::Value;

use super::json;

/// File that lists the modules of a checkpoint directory.
pub const FILE: &str = "modules.json";

/// A module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Path of the list.
    list: PathBuf,
    class: String,
    folder: String,
}

impl Module {
    /// Reads the modules of the checkpoint in `dir`; none if there is no list.
    ///
    /// # Errors
    /// If the list is not valid JSON.
    pub fn read(dir: &Path) -> Result<Vec<Self>, Error> {
        let path = dir.join(FILE);
        let list = json::read_optional(&path)?.unwrap_or_default();
        Ok(Self::from_list(&list, &path))
    }

    /// Parses a list of modules from the file at `path`.
    pub fn from_list(list: &Value, path: &Path) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let module = |module: &Value| Self {
            list: path.to_owned(),
            class: text(&module["type"]),
            folder: text(&module["path"]),
        };
        list.as_array().into_iter().flatten().map(module).collect()
    }

    /// Whether its class is of this kind, such as `Pooling`.
    pub fn is(&self, kind: &str) -> bool {
        self.class.ends_with(kind)
    }

    /// Whether it is a pooling or dense module, which a conversion reads besides the model itself.
    pub fn is_pooling_or_dense(&self) -> bool {
        self.is("Pooling") || self.is("Dense")
    }

    /// Returns the folder of its files in the checkpoint directory.
    ///
    /// # Errors
    /// If that is not a plain name: an untrusted path must not leave the directory.
    pub fn folder(&self) -> Result<&str, Error> {
        if Path::new(&self.folder).file_name().is_some_and(|name| name == &*self.folder) {
            return Ok(&self.folder);
        }
        let what = format!("the path of the module `{}` is `{}`", self.class, self.folder);
        Err(Error::input("config-field", &self.list, what, "correct it"))
    }
}
