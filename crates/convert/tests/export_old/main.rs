//! There and back, of the first transformers, of state spaces and of small families.

mod decoders;
mod first;
mod states;
#[path = "../there_and_back/mod.rs"]
mod there_and_back;
#[path = "../tiny/mod.rs"]
mod tiny;
mod zoo;

use std::path::Path;

use safetensors::SafeTensors;
use serde_json::{Value, json};
use there_and_back::{export, there_and_back};
use tiny::{Tiny, assert_sound};

/// Names and shapes, slowest dimension first.
type Tensors<'a> = &'a [(&'a str, &'a [usize])];

/// A checkpoint with two layers and six tokens.
fn tiny(class: &str, fields: Value, tensors: Tensors, of_layer: Tensors) -> Tiny {
    let mut config = json!({ "architectures": [class], "vocab_size": 6 });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Tiny::new(config).byte_level(6).tensors(tensors).layers(2, of_layer)
}

/// The checkpoint goes there and back, and what is exported has the very tensors of the
/// checkpoint, under their names. Returns the GGUF.
#[track_caller]
fn exported_as_it_was(tiny: &Tiny) -> Vec<u8> {
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("first.gguf");
    std::fs::write(&path, &gguf).unwrap();
    export(&path, dir.path(), u64::MAX);
    let read = |dir: &Path| std::fs::read(dir.join("model.safetensors")).unwrap();
    let (there, back) = (read(tiny.path()), read(dir.path()));
    let [there, back] = [&there, &back].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    let names = |tensors: &SafeTensors| {
        let mut names: Vec<String> = tensors.names().into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(&back), names(&there));
    for (name, tensor) in there.iter() {
        let exported = back.tensor(name).unwrap();
        assert_eq!(exported.shape(), tensor.shape(), "{name}");
        if name.ends_with(".A_log") {
            // Several logarithms round to one decay, which is off by half a last bit at most.
            let (exported, tensor) = (floats(exported.data()), floats(tensor.data()));
            assert!(exported.iter().zip(&tensor).all(|(x, y)| (x - y).abs() <= f32::EPSILON));
        } else {
            assert!(exported.data() == tensor.data(), "{name}");
        }
    }
    there_and_back(tiny.path(), u64::MAX);
    gguf
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
}
