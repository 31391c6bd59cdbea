//! Converts a checkpoint, exports it and converts that again: shared by the tests of exports.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ::safetensors::SafeTensors;
use gguf::TensorType;
use gguf_checkpoint::Checkpoint;
use gguf_convert::{export, hf};
use gguf_quantize::recipe::Target;
use gguf_store::{Existing, Model, ModelTensor, Overwrite};
use serde_json::Value;

use crate::tiny::{Tiny, assert_sound, target_of};

/// Replaces what is there.
pub fn anew() -> Overwrite {
    Overwrite::new(Existing::Replace)
}

/// Never interrupts.
pub fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Converts as `gguf convert` does, without quantizing unless asked to.
pub fn convert(dir: &Path, out: &Path, outtype: Option<Target>) {
    convert_draft(dir, out, outtype, None);
}

/// The same of a draft for the model in `target_model_dir`.
fn convert_draft(
    dir: &Path,
    out: &Path,
    outtype: Option<Target>,
    target_model_dir: Option<PathBuf>,
) {
    let checkpoint = Checkpoint::open(dir).unwrap();
    let options = hf::Options { outtype, target_model_dir, ..hf::Options::default() };
    hf::plan(dir, &checkpoint, &options).unwrap().job.write(out, &anew(), &go_on).unwrap();
}

/// Exports to a directory, with files of at most so many bytes. Returns the notes.
pub fn export(gguf: &Path, dir: &Path, most: u64) -> Vec<String> {
    let model = Model::open(gguf).unwrap();
    let plan = export::plan(&model, export::Options::default()).unwrap();
    let directory = export::Directory::create(dir).unwrap();
    directory.write(&plan, most, &go_on).unwrap();
    plan.notes
}

/// Name, type with shape, bytes.
type TensorContent = (String, String, Vec<u8>);

/// Keys with values, and tensors with their bytes, each in order of name.
fn content(path: &Path) -> (Vec<String>, Vec<TensorContent>) {
    let model = Model::open(path).unwrap();
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
    convert_draft(checkpoint, &first, None, target_of(checkpoint));
    // Under the same name: a converter takes names of models from those of directories.
    let exported = dir.path().join(name);
    assert_eq!(export(&first, &exported, most), [] as [String; 0]);
    convert_draft(&exported, &second, None, target_of(checkpoint));
    let ((keys, tensors), (keys_back, tensors_back)) = (content(&first), content(&second));
    assert_eq!(only_in(&keys, &keys_back), [] as [String; 0], "lost: {}", name.display());
    assert_eq!(only_in(&keys_back, &keys), [] as [String; 0], "added: {}", name.display());
    assert_eq!(tensors_back.len(), tensors.len());
    for (back, tensor) in tensors_back.iter().zip(&tensors) {
        assert_eq!((&back.0, &back.1), (&tensor.0, &tensor.1));
        assert!(back.2 == tensor.2, "{} {}", name.display(), tensor.0);
    }
}

/// What came back.
pub struct Back {
    /// The GGUF that was exported.
    pub gguf: gguf::Bytes,
    /// The exported configuration.
    pub config: Value,
}

/// The checkpoint goes there and back, and what is exported has the very tensors of the checkpoint,
/// under their names.
#[track_caller]
pub fn exported_as_it_was(tiny: &Tiny) -> Back {
    let back = exported_but_for(tiny, |_| false);
    assert_sound(&back.gguf);
    back
}

/// The same of a checkpoint with tensors that have no place in a GGUF, or too few tokens to be sound.
#[track_caller]
pub fn exported_but_for(tiny: &Tiny, is_left_out: impl Fn(&str) -> bool) -> Back {
    let gguf = tiny.convert().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let made = tempfile::tempdir().unwrap();
    let path = made.path().join("first.gguf");
    std::fs::write(&path, &gguf).unwrap();
    export(&path, dir.path(), u64::MAX);
    let read = |dir: &Path| std::fs::read(dir.join("model.safetensors")).unwrap();
    let (there, back) = (read(tiny.path()), read(dir.path()));
    let [there, back] = [&there, &back].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    let names = |tensors: &SafeTensors| {
        let mut names: Vec<String> = tensors.names().into_iter().map(str::to_owned).collect();
        names.retain(|name| !is_left_out(name));
        names.sort_unstable();
        names
    };
    assert_eq!(names(&back), names(&there));
    for (name, tensor) in back.iter() {
        let stored = there.tensor(name).unwrap();
        assert_eq!(tensor.shape(), stored.shape(), "{name}");
        if name.ends_with(".A_log") || name.contains("post_m") {
            // Several logarithms round to one decay, which is off by half a last bit at most; and several
            // numbers to the same sum with another.
            let (exported, stored) = (floats(tensor.data()), floats(stored.data()));
            assert!(exported.iter().zip(&stored).all(|(x, y)| (x - y).abs() <= f32::EPSILON));
        } else {
            assert!(tensor.data() == stored.data(), "{name}");
        }
    }
    there_and_back(tiny.path(), u64::MAX);
    let config = std::fs::read(dir.path().join("config.json")).unwrap();
    Back { gguf, config: serde_json::from_slice(&config).unwrap() }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
}

/// Type and elements of every tensor, by name; elements in blocks are rounded to BF16.
pub fn decoded(path: &Path) -> Vec<(String, TensorType, Vec<f32>)> {
    let model = Model::open(path).unwrap();
    let of_tensor = |tensor: &ModelTensor| {
        let ty = tensor.info.tensor_type;
        let mut stored = vec![0; tensor.info.byte_len().unwrap() as usize];
        tensor.read_at(&mut stored, 0).unwrap();
        let mut values = vec![0.0; tensor.info.shape.elements().unwrap() as usize];
        gguf_quant::decode_row(ty, &stored, &mut values).unwrap();
        if ty.is_quantized() {
            let mut rounded = vec![0; values.len() * 2];
            gguf_quant::encode_row(TensorType::BF16, &values, None, &mut rounded).unwrap();
            gguf_quant::decode_row(TensorType::BF16, &rounded, &mut values).unwrap();
        }
        (tensor.info.name.to_string(), ty, values)
    };
    let mut all: Vec<_> = model.tensors().iter().map(of_tensor).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}
