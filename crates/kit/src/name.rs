//! File names by the naming convention.

use std::path::Path;

use gguf::{Gguf, Metadata, ModelName, NameShard, ParameterCount, TensorInfo, shard_keys};
use gguf_quantize::recipe::Target;
use gguf_store::{LocalFile, Model};

use crate::Error;

/// Returns the canonical name by the metadata, with the file type, and with a size label computed from the tensors if the
/// metadata has none.
pub(crate) fn from_metadata<'a>(
    metadata: &Metadata,
    tensors: impl Iterator<Item = &'a TensorInfo>,
) -> ModelName {
    let file_type = metadata.u64("general.file_type").and_then(gguf::file_type);
    let mut name = ModelName::from_metadata(metadata, file_type.map(|file_type| file_type.name));
    if name.size_label.is_none() {
        let tensors = tensors.map(|tensor| (&*tensor.name, &tensor.shape[..]));
        name.size_label = ParameterCount::from_tensors(tensors).size_label();
    }
    name
}

/// Returns the canonical name of a file, with the number of a shard.
///
/// # Errors
/// If the file cannot be read or breaks the format.
pub fn canonical(file: &Path) -> Result<ModelName, Error> {
    let opened = LocalFile::open(file)?;
    let model = Gguf::read(opened.mapped()).map_err(|error| error.in_file(file))?;
    let metadata = model.metadata();
    Ok(ModelName { shard: shard(metadata), ..from_metadata(metadata, model.tensors().iter()) })
}

/// Returns the default name of an output of this model: `model-f16.gguf` becomes `model-7B-Q4_K_M.gguf` (see
/// [`ModelName::for_output`]).
pub fn for_output(model: &Model, target: Target) -> String {
    let file = model.paths().next().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let stem = match NameShard::strip(&file) {
        Some((prefix, _)) => prefix,
        None => file.strip_suffix(".gguf").unwrap_or(&file),
    };
    let tensors = model.tensors().iter().map(|tensor| &tensor.info);
    let tensors = tensors.map(|tensor| (&*tensor.name, &tensor.shape[..]));
    ModelName::for_output(stem, tensors, &target.to_string()).to_string()
}

/// Renames a file in its directory without replacing another file.
///
/// # Errors
/// `output-exists` if there is a file of that name; if the file cannot be renamed.
pub fn rename(file: &Path, name: &str) -> Result<(), Error> {
    let target = file.with_file_name(name);
    if target == *file {
        return Ok(());
    }
    match gguf_store::rename_new(file, &target) {
        Err(Error::Exists(path)) => {
            let what = format!("{} exists already", path.display());
            Err(Error::request("output-exists", what, ""))
        }
        renamed => renamed,
    }
}

fn shard(metadata: &Metadata) -> Option<NameShard> {
    let number = metadata.u64(shard_keys::NO)?.checked_add(1)?;
    let count = metadata.u64(shard_keys::COUNT).filter(|count| *count > 0)?;
    Some(NameShard { number: number.try_into().ok()?, count: count.try_into().ok()? })
}
