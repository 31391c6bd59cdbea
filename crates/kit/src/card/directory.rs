//! GGUF files of a directory, by what they hold.

use std::path::{Path, PathBuf};

use gguf::NameShard;
use gguf_store::Model;

use crate::Error;

/// Files of a directory and its subdirectories.
pub(super) struct Directory {
    /// Models, encoders and adapters, in the order of their names.
    pub models: Vec<FoundModel>,
    /// Importance matrices: paths, and paths in the directory.
    pub imatrices: Vec<(PathBuf, String)>,
    /// JSON files.
    pub json: Vec<PathBuf>,
}

/// A model of the directory.
pub(super) struct FoundModel {
    /// Path in the directory, with `/`; of the first shard, if there are several.
    pub path: String,
    pub model: Model,
    pub kind: Kind,
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Model,
    Encoder,
    Adapter,
}

/// Depth of subdirectories that are searched.
const DEPTH: usize = 3;

impl FoundModel {
    /// Returns the file name without extension and shard number.
    pub fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        match NameShard::strip(name) {
            Some((prefix, _)) => prefix,
            None => name.strip_suffix(".gguf").unwrap_or(name),
        }
    }
}

impl Directory {
    /// Reads the headers of all GGUF files below `dir`, except in hidden directories.
    ///
    /// # Errors
    /// `model-missing` without a GGUF; if a file cannot be read or breaks the format.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let mut paths = Vec::new();
        list(dir, DEPTH, &mut paths)?;
        paths.sort();
        let mut found = Self { models: Vec::new(), imatrices: Vec::new(), json: Vec::new() };
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".json") {
                found.json.push(path);
                continue;
            }
            // The first shard opens all.
            if NameShard::strip(&name).is_some_and(|(_, shard)| shard.number > 1) {
                continue;
            }
            found.add(dir, path)?;
        }
        if found.models.is_empty() {
            let what = format!("{} holds no GGUF of a model", dir.display());
            let help = "name the directory with the files of the repository";
            return Err(Error::request("model-missing", what, help));
        }
        Ok(found)
    }

    /// Returns all files that were read.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let models = self.models.iter().flat_map(|found| found.model.files());
        let matrices = self.imatrices.iter().map(|(path, _)| path.as_path());
        let json = self.json.iter().map(PathBuf::as_path);
        models.chain(matrices).chain(json).map(Path::to_owned).collect()
    }

    fn add(&mut self, dir: &Path, path: PathBuf) -> Result<(), Error> {
        let relative = path.strip_prefix(dir).unwrap_or(&path).components();
        let parts: Vec<_> = relative.map(|part| part.as_os_str().to_string_lossy()).collect();
        let relative = parts.join("/");
        let model = Model::open(&path)?;
        let metadata = model.metadata();
        let kind = match (metadata.str("general.type"), metadata.architecture()) {
            (Some("imatrix"), _) => {
                self.imatrices.push((path, relative));
                return Ok(());
            }
            (Some("adapter"), _) => Kind::Adapter,
            (Some("mmproj"), _) | (_, Some("clip")) => Kind::Encoder,
            _ => Kind::Model,
        };
        self.models.push(FoundModel { path: relative, model, kind });
        Ok(())
    }
}

/// Lists GGUF and JSON files.
fn list(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |fault| Error::read(dir, fault);
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            if depth > 0 {
                list(&path, depth - 1, files)?;
            }
        } else if name.ends_with(".gguf") || name.ends_with(".json") {
            files.push(path);
        }
    }
    Ok(())
}
