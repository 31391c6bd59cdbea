//! All tensors of a checkpoint, whatever it is stored as.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_store::{LocalFile, Source};

use super::floats::Floats;
use super::layout::Layout;
use super::modules::Module;
use super::quantized::{Found, Made, Scheme};
use super::raw::Raw;
use super::rows::{Computed, TileCache};
use super::weight_file::WeightFile;
use super::{cast, parts, pytorch, safetensors};

/// A tensor of the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the checkpoint, without what names the parts of a quantized matrix.
    pub name: String,
    /// Elements per dimension as the checkpoint has them: slowest first.
    pub shape: Vec<u64>,
    /// How its elements are stored.
    pub tensor_type: TensorType,
    /// Which file holds it: an index into [`Checkpoint::files`].
    pub file: usize,
    /// First byte in that file.
    pub offset: u64,
    /// Of blocks, where the same values are as F32: another index, to be read from its first byte.
    pub floats: Option<usize>,
    /// Whether they are floats of eight bits under scales, which are read as F32.
    pub is_eight_bits: bool,
}

/// What opens a file of weights by its name.
pub type Opener<'o> = dyn Fn(&str) -> Result<Arc<dyn Source>, Error> + 'o;

/// All tensors of a checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    /// The open files, then what is computed from them.
    pub files: Vec<WeightFile>,
    /// The tensors: file by file, those of safetensors in order of name; what is put together from
    /// several stored tensors comes last. Names of matrices behind the model (the modules of class
    /// `Dense` in `modules.json`) begin with their folder and a slash.
    pub entries: Vec<Entry>,
    /// What the user should know: how quantized weights were read.
    pub notes: Vec<String>,
    /// What tells the files from others of the same names.
    identity: Option<String>,
}

impl Checkpoint {
    /// A checkpoint without weights, of which a vocabulary can be made.
    pub fn without_weights() -> Self {
        let identity = Some(String::new());
        Self { files: Vec::new(), entries: Vec::new(), notes: Vec::new(), identity }
    }

    /// A text that changes when the weights do, also in another run; `None` if nobody can tell.
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// Opens the weights in `dir`: safetensors or PyTorch files, or those that an index names.
    /// How they are quantized stands in `config.json`, or in files of the quantizers beside it.
    ///
    /// # Errors
    /// If a file is missing, cut off or of another kind, if the index names tensors that no file
    /// has, if two files hold the same tensor, or if the weights are quantized in a way that is not
    /// known.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let listing = std::fs::read_dir(dir).map_err(|source| Error::read(dir, source))?;
        let mut present = BTreeSet::new();
        for entry in listing {
            let name = entry.map_err(|source| Error::read(dir, source))?.file_name();
            present.insert(name.to_string_lossy().into_owned());
        }
        Self::open_with(dir, &present, &|name| Ok(Arc::new(LocalFile::open(&dir.join(name))?)))
    }

    /// As [`Checkpoint::open`], for weights that are somewhere else: `dir` has the small files,
    /// `present` are the names of all, and `open` opens the weights among them.
    ///
    /// # Errors
    /// Also those of `open`.
    pub fn open_with(dir: &Path, present: &BTreeSet<String>, open: &Opener) -> Result<Self, Error> {
        let layout = Layout::find(dir, present)?;
        let mut files = Vec::new();
        let mut raws = Vec::new();
        for module in Module::read(dir)?.iter().filter(|module| module.is("Dense")) {
            let folder = module.folder()?;
            let name = format!("{folder}/model.safetensors");
            let file = WeightFile { path: dir.join(&name), source: open(&name)? };
            let of_module = |raw: Raw| Raw { name: format!("{folder}/{}", raw.name), ..raw };
            raws.extend(tensors(&file, files.len())?.into_iter().map(of_module));
            files.push(file);
        }
        let mut of_files = Vec::new();
        for name in &layout.names {
            let file = WeightFile { path: dir.join(name), source: open(name)? };
            of_files.push(tensors(&file, files.len())?);
            files.push(file);
        }
        raws.extend(match layout.is_cut() {
            true => parts::join(dir, of_files)?,
            false => of_files.into_iter().flatten().collect(),
        });
        check(dir, &layout, &files, &raws)?;
        let scheme = Scheme::find(dir)?;
        Self::assemble(files, raws, scheme.as_ref())
    }

    /// Opens one file of weights, of whatever name, that has no configuration.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_file(path: &Path) -> Result<Self, Error> {
        Self::open_source(path, Arc::new(LocalFile::open(path)?))
    }

    /// As [`Checkpoint::open_file`], for bytes from anywhere; `name` is for messages.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_source(name: &Path, source: Arc<dyn Source>) -> Result<Self, Error> {
        let file = WeightFile { path: name.to_owned(), source };
        let raws = tensors(&file, 0)?;
        check_unique(std::slice::from_ref(&file), &raws)?;
        Self::assemble(vec![file], raws, None)
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
            None => (raws.into_iter().map(Found::Plain).collect(), Vec::new()),
        };
        let mut entries = Vec::with_capacity(found.len());
        for tensor in found {
            entries.push(match tensor {
                Found::Plain(raw) => plain(raw, &mut files, &cache)?,
                Found::Made(Made { name, shape, tensor_type, file, source, is_eight_bits }) => {
                    let path = files[file].path.clone();
                    let file = files.len();
                    let blocks = source.clone();
                    files.push(WeightFile::computed(path.clone(), source));
                    let floats = tensor_type.is_quantized().then(|| {
                        let columns = shape.last().copied().unwrap_or(1);
                        let rows = Floats { name: name.clone(), blocks, tensor_type, columns };
                        let source = Computed::source(Box::new(rows), &cache);
                        files.push(WeightFile::computed(path, source));
                        files.len() - 1
                    });
                    Entry { name, shape, tensor_type, file, offset: 0, floats, is_eight_bits }
                }
            });
        }
        Ok(Self { files, entries, notes, identity })
    }

    /// These tensors behind those in a folder of `dir`, whose names begin with the folder and a slash.
    ///
    /// # Errors
    /// As [`Checkpoint::open`] of the folder, and if there is none.
    pub fn behind(&self, dir: &Path, folder: &str) -> Result<Self, Error> {
        let path = dir.join(folder);
        if !path.is_dir() {
            let what = format!("has no folder `{folder}`, in which a part of the weights is");
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

    /// The file that holds a tensor, for messages.
    pub fn path_of(&self, entry: &Entry) -> PathBuf {
        self.files[entry.file].path.clone()
    }
}

/// The tensors of a file, recognised by how it begins.
fn tensors(file: &WeightFile, number: usize) -> Result<Vec<Raw>, Error> {
    let mut start = [0; 8];
    let len = file.source.byte_len().min(8) as usize;
    file.source.read_at(&mut start[..len], 0)?;
    if &start == b"version " {
        let what = "is a Git LFS pointer, not the file it stands for";
        let help = "fetch the real file with `git lfs pull`";
        return Err(Error::input("lfs-pointer", &file.path, what, help));
    }
    if len == start.len() && pytorch::begins_with(&start) {
        pytorch::tensors(&file.path, &file.source, number)
    } else {
        safetensors::tensors(&file.path, &file.source, number)
    }
}

/// A tensor that is not quantized: as it is stored, or in a type that GGUF has.
fn plain(raw: Raw, files: &mut Vec<WeightFile>, cache: &Arc<TileCache>) -> Result<Entry, Error> {
    let path = &files[raw.file].path;
    let (name, shape) = (raw.name.clone(), raw.shape.clone());
    if let Some(tensor_type) = raw.dtype.stored_as() {
        let (file, offset) = place(&raw, files);
        let entry =
            Entry { name, shape, tensor_type, file, offset, floats: None, is_eight_bits: false };
        return Ok(entry);
    }
    let Some(tensor_type) = raw.dtype.widened() else {
        let what = format!("tensor `{name}` is stored as {:?}", raw.dtype);
        let help = "GGUF has no type for such numbers";
        return Err(Error::input("checkpoint-dtype", path, what, help));
    };
    let path = path.clone();
    let source = cast::source(raw, tensor_type, cache);
    let file = files.len();
    let entry =
        Entry { name, shape, tensor_type, file, offset: 0, floats: None, is_eight_bits: false };
    files.push(WeightFile::computed(path, source));
    Ok(entry)
}

/// File and offset of a stored tensor, whose bytes may be computed.
fn place(raw: &Raw, files: &mut Vec<WeightFile>) -> (usize, u64) {
    if Arc::ptr_eq(&files[raw.file].source, &raw.source) {
        return (raw.file, raw.offset);
    }
    let path = files[raw.file].path.clone();
    files.push(WeightFile::computed(path, raw.source.clone()));
    (files.len() - 1, raw.offset)
}

/// Every tensor once.
fn check_unique(files: &[WeightFile], raws: &[Raw]) -> Result<(), Error> {
    let mut found = BTreeSet::new();
    match raws.iter().find(|raw| !found.insert(&raw.name)) {
        None => Ok(()),
        Some(raw) => {
            let what = format!("tensor `{}` stands in another place as well", raw.name);
            let help = "remove the file that does not belong here";
            Err(Error::input("checkpoint-tensor-duplicate", &files[raw.file].path, what, help))
        }
    }
}

/// Every tensor once, and exactly those that the index names.
fn check(dir: &Path, layout: &Layout, files: &[WeightFile], raws: &[Raw]) -> Result<(), Error> {
    check_unique(files, raws)?;
    let Some((index_name, index)) = &layout.index else { return Ok(()) };
    let found: BTreeSet<_> = raws.iter().map(|raw| &raw.name).collect();
    if let Some((name, file)) = index.iter().find(|(name, _)| !found.contains(name)) {
        let what = format!("tensor `{name}` is not in `{file}` as the index says");
        let help = "the file is damaged or of another checkpoint: download both again";
        return Err(Error::input("checkpoint-tensor-missing", &dir.join(index_name), what, help));
    }
    Ok(())
}
