//! Output directory of an export, which must be new or empty. A failed export restores it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gguf::{Error, TensorType};
use gguf_pipeline::Tensor;
use gguf_store::{AtomicFile, ClosedOutput, Overwrite, Progress, is_unfinished, require_space};

use super::{Export, File, safetensors};

/// File that marks a directory as a model. It appears last.
const LAST: &str = "config.json";

/// Output directory of an export.
///
/// An export never replaces files, because weights, index and tokenizer of two models would mix.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Directories that were created for the export.
    made: CreatedDirectories,
}

impl Directory {
    /// Creates the directory, or uses it if it is empty.
    ///
    /// # Errors
    /// [`Error::Caller`] if it is not empty or not a directory; [`Error::Environment`] if it cannot be created or read.
    pub fn create(path: &Path) -> Result<Self, Error> {
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            let what = format!("{} is not a directory", path.display());
            return Err(Error::request("output-refused", what, ""));
        }
        let mut made = CreatedDirectories::default();
        made.directory(path)?;
        let failed = |source| Error::environment("read the directory", path, source);
        let mut names = Vec::new();
        for entry in path.read_dir().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            // Temporary files of a killed export do not count.
            if !is_unfinished(&name) {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        names.sort();
        if let [first, others @ ..] = &names[..] {
            let others = match others.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let what = format!(
                "{} is not empty (`{first}`{others}): two models would mix",
                path.display()
            );
            return Err(Error::request("output-not-empty", what, "choose a new directory"));
        }
        Ok(Self { path: path.to_owned(), made })
    }

    /// Writes all files, with at most `max_bytes` of tensors per file. No file gets its name before all are complete.
    ///
    /// Several threads report the numbers of written bytes to `progress`. `Break` cancels the export.
    ///
    /// # Errors
    /// As [`safetensors::write`](fn@safetensors::write). The directory is restored.
    pub fn write(
        mut self,
        export: &Export,
        max_bytes: u64,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let Export { tensors, files, .. } = export;
        let (of_modules, tensors) = by_folder(tensors);
        let tensors = &tensors[..];
        let shards = safetensors::shards(tensors, max_bytes);
        let paths: Vec<PathBuf> = (0..shards.len())
            .map(|i| self.path.join(safetensors::shard_name(i, shards.len())))
            .collect();
        let bytes = |shard: &std::ops::Range<usize>| {
            tensors[shard.clone()].iter().filter_map(|(t, ty)| ty.byte_len(&t.shape)).sum()
        };
        require_space(paths.iter().map(PathBuf::as_path).zip(shards.iter().map(bytes)))?;

        progress.begin("writing", shards.iter().map(bytes).sum());
        let nothing = Overwrite::default();
        let mut complete = Vec::new();
        for (path, shard) in paths.iter().zip(&shards) {
            let tensors = &tensors[shard.clone()];
            complete.push(safetensors::complete(path, tensors, false, &nothing, progress)?);
        }
        for (folder, tensors) in &of_modules {
            let folder = self.path.join(folder);
            self.made.directory(&folder)?;
            let path = folder.join(safetensors::shard_name(0, 1));
            complete.push(safetensors::complete(&path, tensors, false, &nothing, progress)?);
        }
        if shards.len() > 1 {
            let bytes = safetensors::index(tensors, &shards);
            complete.push(self.file(&File { name: safetensors::INDEX, bytes })?);
        }
        for file in files.iter().filter(|file| file.name != LAST) {
            complete.push(self.file(file)?);
        }
        for file in files.iter().filter(|file| file.name == LAST) {
            complete.push(self.file(file)?);
        }
        let mut named = RenamedFiles(Vec::new());
        for file in complete {
            let path = file.target().to_owned();
            file.commit()?;
            named.0.push(path);
        }
        named.0.clear();
        self.made.0.clear();
        Ok(())
    }

    fn file(&mut self, file: &File) -> Result<ClosedOutput, Error> {
        let path = self.path.join(file.name);
        if let Some(parent) = path.parent() {
            self.made.directory(parent)?;
        }
        let output = AtomicFile::create(&path, &Overwrite::default())?;
        output.write_at(&file.bytes, 0)?;
        output.close()
    }
}

type Typed = (Tensor, TensorType);

/// Returns the tensors of `sentence-transformers` modules by folder, and all others.
fn by_folder(tensors: &[Typed]) -> (BTreeMap<String, Vec<Typed>>, Vec<Typed>) {
    let (mut of_modules, mut others) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
    for (tensor, ty) in tensors.iter().cloned() {
        match tensor.name.split_once('/') {
            Some((folder, name)) => {
                let name = name.to_owned();
                let of_module = of_modules.entry(folder.to_owned()).or_default();
                of_module.push((Tensor { name, ..tensor }, ty));
            }
            None => others.push((tensor, ty)),
        }
    }
    (of_modules, others)
}

/// Files of the export that have their final names. Removed unless the export completes.
struct RenamedFiles(Vec<PathBuf>);

impl Drop for RenamedFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Created directories, outermost first. Removed, if empty, unless the export completes.
#[derive(Debug, Default)]
struct CreatedDirectories(Vec<PathBuf>);

impl CreatedDirectories {
    /// Creates a directory and its parents.
    fn directory(&mut self, path: &Path) -> Result<(), Error> {
        let missing: Vec<_> = path
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .collect();
        for path in missing.into_iter().rev() {
            match std::fs::create_dir(path) {
                Ok(()) => self.0.push(path.to_owned()),
                // Another process has created it.
                Err(_) if path.is_dir() => {}
                Err(source) => return Err(Error::environment("create", path, source)),
            }
        }
        Ok(())
    }
}

impl Drop for CreatedDirectories {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            let _ = std::fs::remove_dir(path);
        }
    }
}
