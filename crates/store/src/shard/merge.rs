//! Merges shards into one file and deletes them.

use std::path::Path;

use gguf::shard_keys::{COUNT, PART_FINGERPRINT};
use gguf::{Error, Finding, Header, write_header};

use crate::model::{Model, ModelTensor};
use crate::output::{self, Overwrite};
use crate::progress::Progress;
use crate::shard::write::{CHUNK, write};

/// Options of [`merge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// Keep the `split.` keys of the first shard, with a count of 0, as llama.cpp's tool does.
    /// Without it, merging a split model reproduces the original bytes.
    pub keep_split_keys: bool,
}

/// Writes a model as one file and returns its length. The file appears at `target` when it is
/// complete. It replaces what `overwrite` allows, and never a file of the model.
///
/// `progress` receives the number of bytes of each write; `Break` cancels.
///
/// # Errors
/// As [`Overwrite::check`]; [`Error::File`] if the size of a tensor is unknown;
/// [`Error::Environment`] if a file cannot be read or written.
pub fn merge(
    model: &Model,
    target: &Path,
    options: MergeOptions,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<u64, Error> {
    let header = merged_header(model, options)?;
    progress.begin("merging", header.data_len());
    write(target, &header, model.tensors(), &model.protecting_inputs(overwrite), progress)?
        .commit()?;
    header.file_len(write_header(&header)?.len())
}

fn merged_header(model: &Model, options: MergeOptions) -> Result<Header, Error> {
    let mut draft = model.to_raw_header()?;
    if options.keep_split_keys
        && let Some(first) = model.parts().first()
    {
        draft.metadata = first.header.metadata().clone();
        draft.metadata.remove(PART_FINGERPRINT);
        draft.metadata.remove(COUNT);
        draft.metadata.push(COUNT, 0u16);
    }
    Header::new(draft)
}

/// Deletes a model's files after [`merge`] wrote them to `merged`, if every byte of their tensors
/// is in the merged file and flushed to disk together with its directory entry.
///
/// # Errors
/// [`Error::Caller`] if `merged` is one of the files; [`Error::File`] with code `merge-differs` if
/// it does not hold their tensors; [`Error::Environment`] if a file cannot be read or deleted. Only
/// in the last case some of the files may be deleted; `merged` is complete then.
pub fn delete_merged(model: Model, merged: &Path) -> Result<(), Error> {
    let copy = Model::open(merged)?;
    model.protecting_inputs(&Overwrite::default()).refuse_input(merged)?;
    let copies = copy.index();
    for tensor in model.tensors() {
        let same = match copies.get(&*tensor.info.name) {
            Some(copy) => is_copy(tensor, copy)?,
            None => false,
        };
        if !same {
            let finding = Finding::error("merge-differs", "differs in the merged file")
                .tensor(&*tensor.info.name)
                .help("the shards were not deleted; merge them again");
            return Err(Error::from(finding).in_file(merged));
        }
    }
    output::sync_directory(merged)?;
    let paths: Vec<_> = model.paths().map(Path::to_owned).collect();
    // Some systems cannot delete open files.
    drop(model);
    paths.iter().try_for_each(|path| {
        std::fs::remove_file(path).map_err(|source| Error::environment("delete", path, source))
    })
}

fn is_copy(tensor: &ModelTensor, copy: &ModelTensor) -> Result<bool, Error> {
    let (a, b) = (&tensor.info, &copy.info);
    if (a.tensor_type, a.shape) != (b.tensor_type, b.shape) {
        return Ok(false);
    }
    let (mut original, mut copied) = (Vec::new(), Vec::new());
    let (mut done, len) = (0, a.byte_len().unwrap_or(0));
    while done < len {
        let n = (len - done).min(CHUNK) as usize;
        original.resize(n, 0);
        copied.resize(n, 0);
        tensor.read_stored_at(&mut original, done)?;
        copy.read_stored_at(&mut copied, done)?;
        if original != copied {
            return Ok(false);
        }
        done += n as u64;
    }
    Ok(true)
}
