//! Names of files by the naming convention.

use std::path::Path;

use gguf::{Gguf, Metadata, ModelName, NameShard, ParameterCount, TensorInfo, shard_keys};
use gguf_quantize::recipe::Target;
use gguf_store::{LocalFile, Model};

use crate::Error;

/// The name that the keys ask for: with the type of the file, and a size label counted from the
/// tensors where none is stated.
pub(crate) fn of<'a>(
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

/// The name that the file should have, by its keys and with its number if it is a shard.
///
/// # Errors
/// If the file cannot be read, or breaks the format.
pub fn proper(file: &Path) -> Result<ModelName, Error> {
    let opened = LocalFile::open(file)?;
    let model = Gguf::read(opened.mapped()).map_err(|error| error.in_file(file))?;
    let metadata = model.metadata();
    Ok(ModelName { shard: shard(metadata), ..of(metadata, model.tensors().iter()) })
}

/// The name of an output of this model that nobody has named: `model-f16.gguf` becomes
/// `model-7B-Q4_K_M.gguf` (see [`ModelName::of_output`]).
pub fn of_output(model: &Model, target: Target) -> String {
    let file = model.paths().next().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let stem = match NameShard::strip(&file) {
        Some((prefix, _)) => prefix,
        None => file.strip_suffix(".gguf").unwrap_or(&file),
    };
    let tensors = model.tensors().iter().map(|tensor| &tensor.info);
    let tensors = tensors.map(|tensor| (&*tensor.name, &tensor.shape[..]));
    ModelName::of_output(stem, tensors, &target.to_string()).to_string()
}

/// Gives the file another name in its directory; nothing is replaced.
///
/// # Errors
/// If there is something of that name, or the file cannot be renamed.
pub fn rename(file: &Path, name: &str) -> Result<(), Error> {
    let target = file.with_file_name(name);
    if target == *file {
        return Ok(());
    }
    match gguf_store::rename_new(file, &target) {
        Err(Error::Exists(path)) => {
            let what = format!("{} exists already, and is kept", path.display());
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
