//! Converts a checkpoint, exports it and converts that again: shared by the tests of exports.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use gguf::ModelFiles;
use gguf_convert::export::{self, File, safetensors};
use gguf_convert::hf;
use gguf_convert::source::Checkpoint;
use gguf_quant::recipe::Target;

pub const THREADS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Never interrupts.
pub fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Converts as `gguf convert` does, without quantizing unless asked to.
pub fn convert(dir: &Path, out: &Path, outtype: Option<Target>) {
    let checkpoint = Checkpoint::open(dir).unwrap();
    let options = hf::Options { outtype, ..hf::Options::default() };
    hf::plan(dir, &checkpoint, &options).unwrap().job.write(out, THREADS, &go_on).unwrap();
}

/// Exports to a directory, with files of at most so many bytes. Returns the notes.
pub fn export(gguf: &Path, dir: &Path, most: u64) -> Vec<String> {
    let files = ModelFiles::open(gguf).unwrap();
    let plan = export::plan(&files.model().unwrap(), export::Options::default()).unwrap();
    std::fs::create_dir_all(dir).unwrap();
    let shards = safetensors::shards(&plan.tensors, most);
    for (i, shard) in shards.iter().enumerate() {
        let path = dir.join(safetensors::shard_name(i, shards.len()));
        safetensors::write(&path, &plan.tensors[shard.clone()], false, THREADS, &go_on).unwrap();
    }
    export::write_files(dir, &plan.files).unwrap();
    if shards.len() > 1 {
        let bytes = safetensors::index(&plan.tensors, &shards);
        let name = "model.safetensors.index.json";
        export::write_files(dir, &[File { name, bytes }]).unwrap();
    }
    plan.notes
}

/// Name, type with shape, bytes.
type TensorContent = (String, String, Vec<u8>);

/// Keys with values, and tensors with their bytes, each in order of name.
fn content(path: &Path) -> (Vec<String>, Vec<TensorContent>) {
    let files = ModelFiles::open(path).unwrap();
    let model = files.model().unwrap();
    let mut keys: Vec<_> =
        model.metadata().iter().map(|(key, value)| format!("{key} {value:?}")).collect();
    keys.sort_unstable();
    let mut tensors: Vec<_> = model
        .tensors()
        .iter()
        .map(|tensor| {
            let mut bytes = vec![0; tensor.info.byte_len().unwrap() as usize];
            tensor.read_at(&mut bytes, 0).unwrap();
            let kind = format!("{} {}", tensor.info.tensor_type, tensor.info.shape);
            (tensor.info.name.to_string(), kind, bytes)
        })
        .collect();
    tensors.sort_unstable();
    (keys, tensors)
}

/// What only the first has, each shortened to a line.
fn only_in(keys: &[String], others: &[String]) -> Vec<String> {
    let missing = keys.iter().filter(|key| !others.contains(key));
    missing.map(|key| key.chars().take(100).collect()).collect()
}

/// Converting what was exported gives the same keys, values and tensors; only the order of keys may
/// differ.
#[track_caller]
pub fn there_and_back(checkpoint: &Path, most: u64) {
    let dir = tempfile::tempdir().unwrap();
    let name = checkpoint.file_name().unwrap();
    let (first, second) = (dir.path().join("first.gguf"), dir.path().join("second.gguf"));
    convert(checkpoint, &first, None);
    // Under the same name: a converter takes names of models from those of directories.
    let exported = dir.path().join(name);
    assert_eq!(export(&first, &exported, most), [] as [String; 0]);
    convert(&exported, &second, None);
    let ((keys, tensors), (keys_back, tensors_back)) = (content(&first), content(&second));
    assert_eq!(only_in(&keys, &keys_back), [] as [String; 0], "lost: {}", name.display());
    assert_eq!(only_in(&keys_back, &keys), [] as [String; 0], "added: {}", name.display());
    assert_eq!(tensors_back.len(), tensors.len());
    for (back, tensor) in tensors_back.iter().zip(&tensors) {
        assert_eq!((&back.0, &back.1), (&tensor.0, &tensor.1));
        assert!(back.2 == tensor.2, "{} {}", name.display(), tensor.0);
    }
}
