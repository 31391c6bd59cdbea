//! Models of the llama family, and safetensors alone.

use std::path::{Path, PathBuf};

use gguf::TensorType;
use gguf_convert::export::{self, safetensors};
use gguf_store::Model;

use crate::there_and_back::{anew, convert, go_on, there_and_back};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

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
    let model = Model::open(&gguf).unwrap();
    let tensors = export::plain(&model, export::Options { dtype: Some(TensorType::F32) });
    safetensors::write(&out, &tensors, false, &anew(), &go_on).unwrap();
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
    safetensors::write(&out, &tensors, true, &anew(), &go_on).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let read = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let raw = read.tensor("blk.0.attn_q.weight").unwrap();
    // 256 columns are 8 blocks of 34 bytes.
    assert_eq!((raw.dtype(), raw.shape()), (::safetensors::Dtype::U8, &[256, 272][..]));
}
