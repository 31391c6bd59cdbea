//! Single files without a configuration, and quantized tensors that `auto` keeps.

use std::path::Path;

use gguf::{Bytes, Gguf, TensorType};
use gguf_checkpoint::Checkpoint;
use gguf_convert::{hf, single_file};
use gguf_pipeline::Job;
use gguf_store::{Existing, Overwrite};
use serde_json::Value;

use super::builders::{Tensor, digest, f16s, f32s, scales, write_safetensors};
use crate::fixtures::reference_data;

fn written(job: &Job, dir: &Path) -> Bytes {
    let path = dir.join("out.gguf");
    job.write(&path, &Overwrite::new(Existing::Replace), &()).unwrap();
    std::fs::read(path).unwrap().into()
}

#[test]
fn single_file_keeps_names_shapes_and_types() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("unet.safetensors");
    let values = scales(2 * 3 * 2 * 2 * 32);
    let half = f16s(&values);
    let tensors = [
        Tensor("input_blocks.0.Weight".into(), "F16", vec![2, 3, 2, 2, 32], half.clone()),
        Tensor("out.bias".into(), "F32", vec![2], f32s(&[1.0, 2.0])),
        Tensor("proj.weight".into(), "F16", vec![24, 32], half.clone()),
    ];
    write_safetensors(&file, &tensors);
    let checkpoint = Checkpoint::open_file(&file).unwrap();
    let mut options = single_file::SingleFileOptions {
        architecture: "sdxl".into(),
        name: "unet".into(),
        outtype: None,
        quantization: gguf_quantize::QuantizeOptions::default(),
    };
    let conversion = single_file::plan(&checkpoint, &options).unwrap();
    assert_eq!(conversion.file_name, "unet-F16.gguf");
    let bytes = written(&conversion.job, dir.path());
    let model = Gguf::read(&bytes).unwrap();
    assert_eq!(model.metadata().architecture(), Some("sdxl"));
    let shape = model.metadata().get("comfy.gguf.orig_shape.input_blocks.0.Weight").unwrap();
    let shape: Vec<_> = shape.as_array().unwrap().iter().map(|dim| dim.to_i64().unwrap()).collect();
    assert_eq!(shape, [2, 3, 2, 2, 32]);
    let kept: Vec<_> = model
        .tensors()
        .iter()
        .map(|tensor| (&*tensor.name, tensor.shape.to_vec(), tensor.tensor_type))
        .collect();
    let expected = [
        ("input_blocks.0.Weight", vec![32, 2, 2, 6], TensorType::F16),
        ("out.bias", vec![2], TensorType::F32),
        ("proj.weight", vec![32, 24], TensorType::F16),
    ];
    assert_eq!(kept, expected);
    assert_eq!(model.data(&model.tensors()[0]).unwrap(), half);

    options.outtype = Some("q8_0".parse().unwrap());
    let conversion = single_file::plan(&checkpoint, &options).unwrap();
    let bytes = written(&conversion.job, dir.path());
    let model = Gguf::read(&bytes).unwrap();
    assert_eq!(model.tensors()[2].tensor_type, TensorType::Q8_0);
    assert_eq!(model.tensors()[1].tensor_type, TensorType::F32);

    options.architecture = "Stable Diffusion".into();
    let refusal = single_file::plan(&checkpoint, &options).err().unwrap().to_string();
    assert!(refusal.contains("use lower-case letters"), "{refusal}");
}

/// Quantized tensors that `auto` keeps decode to the bytes of llama.cpp's F32 conversion.
#[test]
fn auto_keeps_quantized_tensors_losslessly() {
    let Some(data) = reference_data() else { return };
    let dir = data.join("zoo/gptq-llama");
    let checkpoint = Checkpoint::open(&dir).unwrap();
    let conversion = hf::plan(&dir, &checkpoint, &hf::HfOptions::default()).unwrap();
    assert!(conversion.notes.iter().any(|note| note.contains("Q5_0 holds exactly")));
    let out = tempfile::tempdir().unwrap();
    let bytes = written(&conversion.job, out.path());
    let model = Gguf::read(&bytes).unwrap();
    let manifest = std::fs::read(dir.join("official.f32.manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut blocks = 0;
    for expected in manifest["tensors"].as_array().unwrap() {
        let name = expected["name"].as_str().unwrap();
        let tensor = model.tensors().iter().find(|tensor| tensor.name == name).unwrap();
        let mut values = vec![0.0; tensor.shape.elements().unwrap() as usize];
        let data = model.data(tensor).unwrap();
        gguf_quant::decode_row(tensor.tensor_type, data, &mut values).unwrap();
        assert_eq!(digest(&f32s(&values)), expected["sha256"], "{name}");
        blocks += usize::from(tensor.tensor_type == TensorType::Q5_0);
    }
    assert_eq!(blocks, 14);
}
