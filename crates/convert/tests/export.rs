//! There and back: a checkpoint converted, exported and converted again.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gguf::{ModelFiles, TensorType};
use gguf_convert::export::{self, File, safetensors};
use gguf_convert::hf;
use gguf_convert::source::Checkpoint;
use gguf_quant::recipe::Target;

const THREADS: NonZeroUsize = NonZeroUsize::new(2).unwrap();
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn convert(dir: &Path, out: &Path, outtype: Option<Target>) {
    let checkpoint = Checkpoint::open(dir).unwrap();
    let options = hf::Options { outtype, ..hf::Options::default() };
    hf::plan(dir, &checkpoint, &options).unwrap().job.write(out, THREADS, &go_on).unwrap();
}

/// Exports to a directory, with files of at most so many bytes. Returns the notes.
fn export(gguf: &Path, dir: &Path, most: u64) -> Vec<String> {
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

/// Converting what was exported gives the same keys, values and tensors; only the order of keys may
/// differ.
#[track_caller]
fn there_and_back(checkpoint: &Path, most: u64) {
    let dir = tempfile::tempdir().unwrap();
    let name = checkpoint.file_name().unwrap();
    let (first, second) = (dir.path().join("first.gguf"), dir.path().join("second.gguf"));
    convert(checkpoint, &first, None);
    // Under the same name: a converter takes names of models from those of directories.
    let exported = dir.path().join(name);
    assert_eq!(export(&first, &exported, most), [] as [String; 0]);
    convert(&exported, &second, None);
    let ((keys, tensors), (keys_back, tensors_back)) = (content(&first), content(&second));
    assert_eq!(keys_back, keys, "{}", name.display());
    assert_eq!(tensors_back.len(), tensors.len());
    for (back, tensor) in tensors_back.iter().zip(&tensors) {
        assert_eq!((&back.0, &back.1), (&tensor.0, &tensor.1));
        assert!(back.2 == tensor.2, "{} {}", name.display(), tensor.0);
    }
}

#[test]
fn the_small_model_goes_there_and_back() {
    there_and_back(Path::new(MODEL), u64::MAX);
    there_and_back(Path::new(MODEL), 1_000_000);
}

#[test]
fn the_zoo_goes_there_and_back() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder with the reference data");
        return;
    };
    for name in ["llama", "mistral", "mixtral", "qwen2", "qwen3", "mixed-llama"] {
        there_and_back(&PathBuf::from(&data).join("zoo").join(name), u64::MAX);
    }
}

#[test]
fn quantized_models_are_decoded_or_copied() {
    let dir = tempfile::tempdir().unwrap();
    let (gguf, out) = (dir.path().join("q.gguf"), dir.path().join("out.safetensors"));
    convert(Path::new(MODEL), &gguf, Some("q8_0".parse().unwrap()));
    let files = ModelFiles::open(&gguf).unwrap();
    let model = files.model().unwrap();
    let tensors = export::plain(&model, export::Options { dtype: Some(TensorType::F32) });
    safetensors::write(&out, &tensors, false, THREADS, &go_on).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let read = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for tensor in model.tensors() {
        let mut stored = vec![0; tensor.info.byte_len().unwrap() as usize];
        tensor.read_at(&mut stored, 0).unwrap();
        let mut values = vec![0.0f32; tensor.info.shape.elements().unwrap() as usize];
        gguf_quant::decode_row(tensor.info.tensor_type, &stored, &mut values).unwrap();
        let expected: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert!(read.tensor(&tensor.info.name).unwrap().data() == expected);
    }
    safetensors::write(&out, &tensors, true, THREADS, &go_on).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let read = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let raw = read.tensor("blk.0.attn_q.weight").unwrap();
    // 256 columns are 8 blocks of 34 bytes.
    assert_eq!((raw.dtype(), raw.shape()), (::safetensors::Dtype::U8, &[256, 272][..]));
}
