//! Summary of a checkpoint's weights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gguf::{Error, Shape, TensorType, is_gguf};
use gguf_store::LocalFile;

use crate::checkpoint::Checkpoint;
use crate::config::Config;

/// Summary of the weights of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightsSummary {
    /// Model class in the configuration.
    pub class: Option<String>,
    /// Number of weight files.
    pub files: usize,
    /// Number of tensors.
    pub tensors: u64,
    /// Number of parameters.
    pub parameters: u64,
    /// Number of tensors and bytes of each type.
    pub types: BTreeMap<TensorType, (u64, u64)>,
}

impl WeightsSummary {
    /// Summarizes the local checkpoint directory or single weight file at `path` from its headers; `None` for other
    /// files.
    ///
    /// # Errors
    /// If the weights cannot be read.
    pub fn at(path: &Path) -> Result<Option<Self>, Error> {
        /// Extensions of single weight files.
        const WEIGHT_EXTENSIONS: [&str; 5] = ["safetensors", "bin", "pth", "pt", "ckpt"];
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let mut class = None;
        let checkpoint = if path.is_dir() {
            let names = path.read_dir().map_err(|fault| Error::read(path, fault))?;
            let mut names = names.flatten().map(|entry| entry.file_name());
            if names.any(|name| name.to_str().is_some_and(is_gguf)) {
                return Ok(None);
            }
            if Config::file_in(path).is_some() {
                class = Config::read(path)?.class().ok().map(str::to_owned);
                Checkpoint::open(path)?
            } else {
                match Checkpoint::open(path) {
                    Err(_) => return Ok(None),
                    Ok(opened) => opened,
                }
            }
        } else if WEIGHT_EXTENSIONS.contains(&ending) && path.is_file() {
            // Legacy GGML files and GGUF files can have these extensions, too.
            if LocalFile::open(path)?.mapped().starts_with(&gguf::MAGIC) {
                return Ok(None);
            }
            match Checkpoint::open_file(path) {
                Err(_) if ending != WEIGHT_EXTENSIONS[0] => return Ok(None),
                opened => opened?,
            }
        } else {
            return Ok(None);
        };
        let files: BTreeSet<_> = checkpoint.files.iter().map(|file| &file.path).collect();
        let mut weights = Self { class, files: files.len(), ..Self::default() };
        for entry in checkpoint.entries {
            let elements = entry.shape.iter().fold(1, |all: u64, len| all.saturating_mul(*len));
            let shape = Shape::new(&[elements]);
            let of_type = weights.types.entry(entry.tensor_type).or_default();
            of_type.0 += 1;
            of_type.1 += shape.and_then(|shape| entry.tensor_type.byte_len(&shape)).unwrap_or(0);
            weights.tensors += 1;
            weights.parameters = weights.parameters.saturating_add(elements);
        }
        Ok(Some(weights))
    }

    /// Returns the bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.types.values().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }
}
