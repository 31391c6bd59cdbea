//! Checkpoints in safetensors files, one or many with an index.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gguf::{LocalFile, Source, TensorType};
use safetensors::tensor::{Dtype, Metadata};

use crate::{Error, json};

/// A tensor of the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the checkpoint.
    pub name: String,
    /// Elements per dimension as the checkpoint has them: slowest first.
    pub shape: Vec<u64>,
    /// How its elements are stored.
    pub tensor_type: TensorType,
    /// Which file holds it: an index into [`Checkpoint::files`].
    pub file: usize,
    /// First byte in that file.
    pub offset: u64,
}

/// All tensors of a checkpoint directory.
#[derive(Debug)]
pub struct Checkpoint {
    /// The open files.
    pub files: Vec<LocalFile>,
    /// The tensors: file by file, in order of name.
    pub entries: Vec<Entry>,
}

const INDEX: &str = "model.safetensors.index.json";

/// The longest header that is read: that of the safetensors library.
const MAX_HEADER: u64 = 100_000_000;

impl Checkpoint {
    /// Reads the headers of all `model*.safetensors` files in `dir`, or of those that the index
    /// names.
    ///
    /// # Errors
    /// If a file is missing, cut off or not safetensors, if the index names tensors that no file
    /// has, or if two files hold the same tensor.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let index = weight_map(dir)?;
        let names = match &index {
            Some(map) => map.values().cloned().collect(),
            None => names_in(dir)?,
        };
        let mut checkpoint = Self { files: Vec::new(), entries: Vec::new() };
        for name in &names {
            let path = dir.join(name);
            if !path.is_file() {
                let what = format!("names `{name}`, which is not there");
                let help = "download the missing shard";
                return Err(Error::input(&dir.join(INDEX), what, help));
            }
            checkpoint.add(&path)?;
        }
        checkpoint.check(dir, index.as_ref())?;
        Ok(checkpoint)
    }

    fn add(&mut self, path: &Path) -> Result<(), Error> {
        let file = LocalFile::open(path)?;
        let header = read_header(&file)?;
        // The library checks offsets, sizes and overlaps while it deserializes.
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|fault| {
            Error::input(path, format!("not a valid safetensors header: {fault}"), DAMAGED)
        })?;
        let data_start = header.len() as u64 + PREFIX;
        let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        let data_len = tensors.iter().map(|(_, t)| t.data_offsets.1).max().unwrap_or(0) as u64;
        let expected = data_start + data_len;
        if file.byte_len() != expected {
            let what = format!("has {} bytes instead of {expected}", file.byte_len());
            return Err(Error::input(path, what, DAMAGED));
        }
        for (name, tensor) in tensors {
            let Some(tensor_type) = tensor_type(tensor.dtype) else {
                let what = format!("tensor `{name}` is stored as {:?}", tensor.dtype);
                return Err(Error::input(path, what, "this storage cannot be converted yet"));
            };
            self.entries.push(Entry {
                name,
                shape: tensor.shape.iter().map(|&dim| dim as u64).collect(),
                tensor_type,
                file: self.files.len(),
                offset: data_start + tensor.data_offsets.0 as u64,
            });
        }
        self.files.push(file);
        Ok(())
    }

    /// Every tensor once, and exactly those that the index names.
    fn check(&self, dir: &Path, index: Option<&BTreeMap<String, String>>) -> Result<(), Error> {
        let mut found = BTreeSet::new();
        for entry in &self.entries {
            if !found.insert(&entry.name) {
                let path = self.files[entry.file].path();
                let what = format!("tensor `{}` stands in another file as well", entry.name);
                return Err(Error::input(path, what, "remove the file that does not belong here"));
            }
        }
        let Some(index) = index else { return Ok(()) };
        if let Some((name, file)) = index.iter().find(|(name, _)| !found.contains(name)) {
            let what = format!("tensor `{name}` is not in `{file}` as the index says");
            return Err(Error::input(&dir.join(INDEX), what, DAMAGED));
        }
        Ok(())
    }
}

const DAMAGED: &str = "the file is damaged or cut off: download it again";

/// Bytes of the header's length, which stands before it.
const PREFIX: u64 = 8;

/// The header: JSON, padded with spaces.
fn read_header(file: &LocalFile) -> Result<Vec<u8>, Error> {
    let damaged = |what: String| Error::input(file.path(), what, DAMAGED);
    if file.byte_len() < PREFIX {
        return Err(damaged(format!("has only {} bytes", file.byte_len())));
    }
    let mut prefix = [0; 8];
    file.read_at(&mut prefix, 0)?;
    let len = u64::from_le_bytes(prefix);
    if &prefix == b"version " {
        let what = "is a Git LFS pointer, not the file it stands for";
        return Err(Error::input(file.path(), what, "fetch the real file with `git lfs pull`"));
    }
    if len > MAX_HEADER || len + PREFIX > file.byte_len() {
        let what =
            format!("the header of {len} bytes does not fit the {} of the file", file.byte_len());
        return Err(damaged(what));
    }
    let mut header = vec![0; len as usize];
    file.read_at(&mut header, PREFIX)?;
    Ok(header)
}

/// Tensor name to file name, if there is an index.
fn weight_map(dir: &Path) -> Result<Option<BTreeMap<String, String>>, Error> {
    let path = dir.join(INDEX);
    let Some(index) = json::read_optional(&path)? else { return Ok(None) };
    let fault = |what: &str| Error::input(&path, what, "download the file again");
    let map = index.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| fault("has no object `weight_map`"))?;
    map.iter()
        .map(|(tensor, file)| {
            let file = file.as_str().filter(|file| is_plain_name(file));
            let file = file.ok_or_else(|| fault("a value of `weight_map` is not a file name"))?;
            Ok((tensor.clone(), file.to_owned()))
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// A name within the directory: an index must not lead anywhere else.
fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file_name| file_name == name)
}

/// The weight files of a directory without an index, by the naming that checkpoints keep to.
fn names_in(dir: &Path) -> Result<BTreeSet<String>, Error> {
    let listing = std::fs::read_dir(dir).map_err(|source| Error::read(dir, source))?;
    let mut names = BTreeSet::new();
    for entry in listing {
        let name = entry.map_err(|source| Error::read(dir, source))?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("model") && name.ends_with(".safetensors") {
            names.insert(name.into_owned());
        }
    }
    if let Some(missing) = missing_shard(&names) {
        let what = format!("shard `{missing}` is not there, though others of its set are");
        return Err(Error::input(dir, what, "download the missing shard"));
    }
    if names.is_empty() {
        let what = format!("holds neither `model*.safetensors` nor `{INDEX}`");
        return Err(Error::input(dir, what, "name a directory with a Hugging Face checkpoint"));
    }
    Ok(names)
}

/// The first absent file of a set named `model-00001-of-00003.safetensors`.
fn missing_shard(names: &BTreeSet<String>) -> Option<String> {
    let count = names.iter().find_map(|name| {
        let (_, count) = name.strip_suffix(".safetensors")?.rsplit_once("-of-")?;
        count.parse::<u32>().ok()
    })?;
    (1..=count.min(99_999))
        .map(|no| format!("model-{no:05}-of-{count:05}.safetensors"))
        .find(|name| !names.contains(name))
}

fn tensor_type(dtype: Dtype) -> Option<TensorType> {
    Some(match dtype {
        Dtype::F32 => TensorType::F32,
        Dtype::F16 => TensorType::F16,
        Dtype::BF16 => TensorType::BF16,
        Dtype::F64 => TensorType::F64,
        // A mask, which every family leaves out: its bytes.
        Dtype::I8 | Dtype::U8 | Dtype::BOOL => TensorType::I8,
        Dtype::I16 => TensorType::I16,
        Dtype::I32 => TensorType::I32,
        Dtype::I64 => TensorType::I64,
        _ => return None,
    })
}

/// The files that make up a checkpoint, for messages.
impl Checkpoint {
    /// The file that holds a tensor.
    pub fn path_of(&self, entry: &Entry) -> PathBuf {
        self.files[entry.file].path().to_owned()
    }
}
