//! Tensors of a checkpoint, in any storage format.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_store::{LocalFile, Source};

use super::floats::Floats;
use super::layout::WeightLayout;
use super::modules::Module;
use super::quantized::{ComputedTensor, Resolved, Scheme};
use super::raw::Raw;
use super::rows::{ComputedSource, TileCache};
use super::weight_file::WeightFile;
use super::{cast, pytorch, safetensors, tensor_parallel, wrapped_names};

/// A tensor of the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name in the checkpoint; for a quantized matrix, without the suffixes of its parts.
    pub name: String,
    /// Dimensions in checkpoint order: slowest first.
    pub shape: Vec<u64>,
    /// GGUF type of its elements.
    pub tensor_type: TensorType,
    /// Index of its file in [`Checkpoint::files`].
    pub file: usize,
    /// Start of its data in that file.
    pub offset: u64,
    /// For a tensor of blocks, index of a file with the same values as F32, which start at byte 0.
    pub floats: Option<usize>,
    /// Whether it is stored as FP8 with scales, which are read as F32.
    pub is_fp8: bool,
}

/// Function that opens a weight file by name.
pub type Opener<'o> = dyn Fn(&str) -> Result<Arc<dyn Source>, Error> + 'o;

/// A checkpoint: its files and tensors.
#[derive(Debug)]
pub struct Checkpoint {
    /// Open files, then sources computed from them.
    pub files: Vec<WeightFile>,
    /// Tensors, file by file, those of safetensors in order of name; tensors combined from several
    /// stored ones come last. Names of `Dense` matrices (modules in `modules.json`) begin with
    /// their folder and a slash.
    pub entries: Vec<Entry>,
    /// Notes for the user: how quantized weights are read, and what was removed from names of tensors.
    pub notes: Vec<String>,
    /// Identity of the files.
    identity: Option<String>,
}

impl Checkpoint {
    /// Returns a checkpoint without weights, for a vocabulary only.
    pub fn without_weights() -> Self {
        let identity = Some(String::new());
        Self { files: Vec::new(), entries: Vec::new(), notes: Vec::new(), identity }
    }

    /// Returns a string that changes with the weights, also between runs; `None` if changes cannot
    /// be detected.
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// Opens the weights in `dir`: safetensors or PyTorch files, or those that an index names.
    /// `config.json`, or a file of the quantizer beside it, states the quantization.
    ///
    /// # Errors
    /// If a file is missing, truncated or of another format, if the index names tensors that no
    /// file has, if two files hold the same tensor, or if the quantization is not supported.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let listing = std::fs::read_dir(dir).map_err(|source| Error::read(dir, source))?;
        let mut present = BTreeSet::new();
        for entry in listing {
            let name = entry.map_err(|source| Error::read(dir, source))?.file_name();
            present.insert(name.to_string_lossy().into_owned());
        }
        Self::open_with(dir, &present, &|name| Ok(Arc::new(LocalFile::open(&dir.join(name))?)))
    }

    /// Like [`Checkpoint::open`], for remote weights: `dir` has the small files, `present` are the
    /// names of all files, and `open` opens a weight file.
    ///
    /// # Errors
    /// Also errors of `open`.
    pub fn open_with(dir: &Path, present: &BTreeSet<String>, open: &Opener) -> Result<Self, Error> {
        let layout = WeightLayout::find(dir, present)?;
        let mut files = Vec::new();
        let mut raws = Vec::new();
        for module in Module::read(dir)?.iter().filter(|module| module.is("Dense")) {
            let folder = module.folder()?;
            let name = format!("{folder}/model.safetensors");
            let file = WeightFile { path: dir.join(&name), source: open(&name)? };
            let in_folder = |raw: Raw| Raw { name: format!("{folder}/{}", raw.name), ..raw };
            raws.extend(tensors(&file, files.len())?.into_iter().map(in_folder));
            files.push(file);
        }
        let mut by_file = Vec::new();
        for name in &layout.names {
            let file = WeightFile { path: dir.join(name), source: open(name)? };
            by_file.push(tensors(&file, files.len())?);
            files.push(file);
        }
        raws.extend(match layout.is_tensor_parallel() {
            true => tensor_parallel::join(dir, by_file)?,
            false => by_file.into_iter().flatten().collect(),
        });
        check(dir, &layout, &files, &raws)?;
        let mut renamed = wrapped_names::unwrap(&mut raws);
        renamed.extend(wrapped_names::unwrap_peft(&mut raws, &files)?);
        check_unique(&files, &raws)?;
        let scheme = Scheme::find(dir)?;
        let mut checkpoint = Self::assemble(files, raws, scheme.as_ref())?;
        checkpoint.notes.extend(renamed);
        Ok(checkpoint)
    }

    /// Opens a single weight file, of any name, without a configuration.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_file(path: &Path) -> Result<Self, Error> {
        Self::open_source(path, Arc::new(LocalFile::open(path)?))
    }

    /// Like [`Checkpoint::open_file`], for any source; `name` is used in messages.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_source(name: &Path, source: Arc<dyn Source>) -> Result<Self, Error> {
        let file = WeightFile { path: name.to_owned(), source };
        let mut raws = tensors(&file, 0)?;
        let notes = wrapped_names::unwrap(&mut raws);
        check_unique(std::slice::from_ref(&file), &raws)?;
        let mut checkpoint = Self::assemble(vec![file], raws, None)?;
        checkpoint.notes.extend(notes);
        Ok(checkpoint)
    }

    fn assemble(
        mut files: Vec<WeightFile>,
        raws: Vec<Raw>,
        scheme: Option<&Scheme>,
    ) -> Result<Self, Error> {
        let identity = files.iter().map(|file| Some(file.source.identity()? + "\n")).collect();
        let cache = Arc::new(TileCache::default());
        let (found, notes) = match scheme {
            Some(scheme) => scheme.resolve(raws, &files, &cache)?,
            None => (raws.into_iter().map(Resolved::Stored).collect(), Vec::new()),
        };
        let mut entries = Vec::with_capacity(found.len());
        for tensor in found {
            entries.push(match tensor {
                Resolved::Stored(raw) => unquantized(raw, &mut files, &cache)?,
                Resolved::Computed(ComputedTensor {
                    name,
                    shape,
                    tensor_type,
                    file,
                    source,
                    is_fp8,
                }) => {
                    let path = files[file].path.clone();
                    let file = files.len();
                    let blocks = source.clone();
                    files.push(WeightFile::computed(path.clone(), source));
                    let floats = tensor_type.is_quantized().then(|| {
                        let columns = shape.last().copied().unwrap_or(1);
                        let rows = Floats { name: name.clone(), blocks, tensor_type, columns };
                        let source = ComputedSource::source(Box::new(rows), &cache);
                        files.push(WeightFile::computed(path, source));
                        files.len() - 1
                    });
                    Entry { name, shape, tensor_type, file, offset: 0, floats, is_fp8 }
                }
            });
        }
        Ok(Self { files, entries, notes, identity })
    }

    /// Returns the tensors in a folder of `dir`, with names that begin with the folder and a slash,
    /// followed by the tensors of this checkpoint.
    ///
    /// # Errors
    /// As [`Checkpoint::open`] of the folder, and if the folder is missing.
    pub fn with_folder(&self, dir: &Path, folder: &str) -> Result<Self, Error> {
        let path = dir.join(folder);
        if !path.is_dir() {
            let what = format!("has no folder `{folder}`, which holds a part of the weights");
            let help = "fetch all folders of the model's repository";
            return Err(Error::input("checkpoint-weights-missing", dir, what, help));
        }
        let mut whole = Self::open(&path)?;
        for entry in &mut whole.entries {
            entry.name.insert_str(0, &format!("{folder}/"));
        }
        let before = whole.files.len();
        whole.files.extend(self.files.iter().cloned());
        whole.entries.extend(self.entries.iter().cloned().map(|entry| Entry {
            file: entry.file + before,
            floats: entry.floats.map(|file| file + before),
            ..entry
        }));
        whole.notes.extend(self.notes.iter().cloned());
        whole.identity = whole.identity.zip(self.identity.clone()).map(|(a, b)| a + &b);
        Ok(whole)
    }

    /// Returns the path of the first file, for messages about the whole checkpoint; empty if there is none.
    pub fn path(&self) -> PathBuf {
        self.files.first().map(|file| file.path.clone()).unwrap_or_default()
    }

    /// Returns the path of a tensor's file, for messages.
    pub fn path_of(&self, entry: &Entry) -> PathBuf {
        self.files[entry.file].path.clone()
    }
}

/// Reads the tensor directory of a file, in the format that its first bytes identify.
fn tensors(file: &WeightFile, number: usize) -> Result<Vec<Raw>, Error> {
    let mut start = [0; 8];
    let len = file.source.byte_len().min(8) as usize;
    file.source.read_at(&mut start[..len], 0)?;
    if &start == b"version " {
        let what = "is a Git LFS pointer, not the file itself";
        let help = "fetch the real file with `git lfs pull`";
        return Err(Error::input("lfs-pointer", &file.path, what, help));
    }
    if len == start.len() && pytorch::begins_with(&start) {
        pytorch::tensors(&file.path, &file.source, number)
    } else {
        safetensors::tensors(&file.path, &file.source, number)
    }
}

/// Returns an unquantized tensor: as stored, or cast to a GGUF type.
fn unquantized(
    raw: Raw,
    files: &mut Vec<WeightFile>,
    cache: &Arc<TileCache>,
) -> Result<Entry, Error> {
    let path = &files[raw.file].path;
    let (name, shape) = (raw.name.clone(), raw.shape.clone());
    if let Some(tensor_type) = raw.dtype.stored_as() {
        let (file, offset) = location(&raw, files);
        let entry = Entry { name, shape, tensor_type, file, offset, floats: None, is_fp8: false };
        return Ok(entry);
    }
    let Some(tensor_type) = raw.dtype.widened() else {
        let what = format!("tensor `{name}` is stored as {:?}", raw.dtype);
        let help = "GGUF has no type for these elements";
        return Err(Error::input("checkpoint-dtype", path, what, help));
    };
    let path = path.clone();
    let source = cast::source(raw, tensor_type, cache);
    let file = files.len();
    let entry = Entry { name, shape, tensor_type, file, offset: 0, floats: None, is_fp8: false };
    files.push(WeightFile::computed(path, source));
    Ok(entry)
}

/// Returns the file and offset of a stored tensor, whose bytes may be computed.
fn location(raw: &Raw, files: &mut Vec<WeightFile>) -> (usize, u64) {
    if Arc::ptr_eq(&files[raw.file].source, &raw.source) {
        return (raw.file, raw.offset);
    }
    let path = files[raw.file].path.clone();
    files.push(WeightFile::computed(path, raw.source.clone()));
    (files.len() - 1, raw.offset)
}

/// Checks that no tensor occurs twice.
fn check_unique(files: &[WeightFile], raws: &[Raw]) -> Result<(), Error> {
    let mut found = BTreeSet::new();
    match raws.iter().find(|raw| !found.insert(&raw.name)) {
        None => Ok(()),
        Some(raw) => {
            let what = format!("tensor `{}` occurs in another file too", raw.name);
            let help = "remove the file that does not belong here";
            Err(Error::input("checkpoint-tensor-duplicate", &files[raw.file].path, what, help))
        }
    }
}

/// Checks that no tensor occurs twice, and that all tensors of the index exist.
fn check(
    dir: &Path,
    layout: &WeightLayout,
    files: &[WeightFile],
    raws: &[Raw],
) -> Result<(), Error> {
    check_unique(files, raws)?;
    let Some((index_name, index)) = &layout.index else { return Ok(()) };
    let found: BTreeSet<_> = raws.iter().map(|raw| &raw.name).collect();
    if let Some((name, file)) = index.iter().find(|(name, _)| !found.contains(name)) {
        let what = format!("tensor `{name}` is not in `{file}`, where the index places it");
        let help = "the file is corrupt or belongs to another checkpoint: download both again";
        return Err(Error::input("checkpoint-tensor-missing", &dir.join(index_name), what, help));
    }
    Ok(())
}
