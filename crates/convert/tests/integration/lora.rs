//! LoRA adapters: conversion, merging and extraction.

use std::path::{Path, PathBuf};

use gguf::{ByteOrder, Metadata, Shape, TensorType};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf::HfOptions;
use gguf_convert::lora::{Adapter, extract, merge, peft};
use gguf_pipeline::{Content, Item, Job, Tensor};
use gguf_quantize::recipe::Target;
use gguf_store::{Existing, Model, Overwrite};
use tempfile::TempDir;

use crate::fixtures::reference_data;

fn write(job: &Job, path: &Path) {
    job.write(path, &Overwrite::new(Existing::Replace), &()).unwrap();
}

fn values(files: &Model, name: &str) -> Vec<f32> {
    let model = files;
    let tensor = model.tensors().iter().find(|tensor| tensor.info.name == name).unwrap();
    let mut bytes = vec![0; tensor.info.byte_len().unwrap() as usize];
    tensor.read_at(&mut bytes, 0).unwrap();
    let mut values = vec![0.0; tensor.info.shape.elements().unwrap() as usize];
    gguf_quant::decode_row(tensor.info.tensor_type, &bytes, &mut values).unwrap();
    values
}

#[test]
fn adapter_equals_llama_cpps_conversion() {
    let Some(data) = reference_data() else { return };
    let (dir, base) = (data.join("zoo/lora-llama"), data.join("zoo/llama"));
    let checkpoint = Checkpoint::open_file(&peft::weights(&dir)).unwrap();
    let weights = Checkpoint::open(&base).unwrap();
    assert_eq!(peft::base_dir(&dir, None).unwrap(), dir.join("../llama"));
    let out = tempfile::tempdir().unwrap();
    for outtype in ["f32", "f16"] {
        let options = HfOptions { outtype: Some(outtype.parse().unwrap()), ..HfOptions::default() };
        let plan = peft::plan(&dir, &checkpoint, &base, Some(&weights), &options).unwrap();
        let path = out.path().join(outtype);
        write(&plan.job, &path);
        let (ours, official) = (
            Model::open(&path).unwrap(),
            Model::open(&dir.join(format!("official.lora.{outtype}.gguf"))).unwrap(),
        );
        let (ours, official) = (ours, official);
        // Only the keys about the base model are added to those of llama.cpp's converter.
        let is_ours = |key: &str| key.starts_with("gguf_kit.") || key.contains("base_model");
        let keys = |metadata: &Metadata| -> Vec<_> {
            let all = metadata.iter().filter(|(key, _)| !is_ours(key));
            all.map(|(key, value)| format!("{key} {value:?}")).collect()
        };
        assert_eq!(keys(ours.metadata()), keys(official.metadata()), "{outtype}");
        assert_eq!(ours.tensors().len(), official.tensors().len());
        for (a, b) in ours.tensors().iter().zip(official.tensors()) {
            assert_eq!(
                (&a.info.name, a.info.shape, a.info.tensor_type),
                (&b.info.name, b.info.shape, b.info.tensor_type)
            );
            let bytes = |tensor: &gguf_store::ModelTensor| {
                let mut bytes = vec![0; tensor.info.byte_len().unwrap() as usize];
                tensor.read_at(&mut bytes, 0).unwrap();
                bytes
            };
            assert!(bytes(a) == bytes(b), "{outtype} {}", a.info.name);
        }
    }
}

#[test]
fn adapter_converts_without_base_weights() {
    let Some(data) = reference_data() else { return };
    let (dir, base) = (data.join("zoo/lora-llama"), data.join("zoo/llama"));
    let checkpoint = Checkpoint::open_file(&peft::weights(&dir)).unwrap();
    let plan = peft::plan(&dir, &checkpoint, &base, None, &HfOptions::default()).unwrap();
    assert_eq!(plan.job.metadata.str("gguf_kit.adapter.base_digest"), None);
    let another =
        peft::plan(&dir, &checkpoint, &data.join("zoo/bert"), None, &HfOptions::default());
    assert!(another.is_err());
}

/// Returns a tensor whose elements `value` returns for their index.
fn tensor(name: &str, shape: &[u64], value: &dyn Fn(usize) -> f32) -> Item {
    let count = shape.iter().product::<u64>() as usize;
    let tensor = Tensor {
        name: name.into(),
        shape: Shape::new(shape).unwrap(),
        stored_type: TensorType::F32,
        content: Content::Values((0..count).map(value).collect()),
    };
    Item::new(tensor, TensorType::F32)
}

/// Writes a model with two matrices and a norm, whose elements `value` returns for their index.
fn model(dir: &Path, name: &str, value: impl Fn(usize) -> f32) -> PathBuf {
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "llama");
    metadata.set("general.name", name.to_owned());
    let items = vec![
        tensor("blk.0.attn_q.weight", &[32, 64], &value),
        tensor("blk.0.ffn_up_exps.weight", &[32, 16, 3], &value),
    ];
    let path = dir.join(format!("{name}.gguf"));
    write(&Job { metadata, items, check_finite: true, order: ByteOrder::Little }, &path);
    path
}

/// Writes a base model, and a model that differs from it by rank 1 in both matrices.
fn tuned() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let before = |i: usize| ((i * 37) % 101) as f32 / 50.0 - 1.0;
    let update = |i: usize| (1.0 + (i % 32) as f32) * (((i / 32) % 7) as f32 - 3.0) / 64.0;
    let base = model(dir.path(), "base", before);
    let tuned = model(dir.path(), "tuned", |i| before(i) + update(i));
    (dir, base, tuned)
}

#[test]
fn extracted_adapter_merges_to_the_tuned_model() {
    let (dir, base_path, tuned_path) = tuned();
    let (base, tuned) = (Model::open(&base_path).unwrap(), Model::open(&tuned_path).unwrap());
    let extraction = extract::extract(&base, &tuned, 2, &()).unwrap();
    assert!(
        extraction.captured.iter().all(|(_, share)| *share > 0.999_999),
        "{:?}",
        extraction.captured
    );
    let adapter_path = dir.path().join("adapter.gguf");
    write(&extraction.job, &adapter_path);

    let adapter = Model::open(&adapter_path).unwrap();
    let adapter = Adapter::read(&adapter).unwrap();
    assert_eq!(adapter.misfits(&base), [] as [String; 0]);
    for (scale, wanted) in [(1.0, &tuned), (0.0, &base)] {
        let merge = merge::Merge::new(&base, &[(adapter.clone(), scale)]).unwrap();
        let merged = merge.plan(Target::Copy, &gguf_quantize::QuantizeOptions::default()).unwrap();
        let path = dir.path().join("merged.gguf");
        write(&merged.job, &path);
        let merged = Model::open(&path).unwrap();
        for name in ["blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight"] {
            let pairs = values(&merged, name).into_iter().zip(values(wanted, name));
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // Tolerance for F32 sums of a few products of numbers about 1.
            assert!(worst < 1e-5, "{name} x {scale}: {worst}");
        }
    }
}

#[test]
fn adapters_of_other_models_fail() {
    let (dir, base_path, tuned_path) = tuned();
    let (base, tuned) = (Model::open(&base_path).unwrap(), Model::open(&tuned_path).unwrap());
    assert!(extract::extract(&base, &base, 2, &()).is_err());
    let mut job = extract::extract(&base, &tuned, 2, &()).unwrap().job;
    let path = dir.path().join("adapter.gguf");

    let misfits = |job: &Job| {
        write(job, &path);
        let files = Model::open(&path).unwrap();
        Adapter::read(&files).map(|adapter| adapter.misfits(&base))
    };
    let key = "gguf_kit.adapter.base_digest";
    let digest = job.metadata.str(key).unwrap().to_owned();
    job.metadata.set(key, "0".repeat(64));
    assert!(misfits(&job).unwrap()[0].contains("other matrices"));
    job.metadata.set(key, digest);
    job.metadata.set("general.architecture", "qwen2");
    assert!(misfits(&job).unwrap()[0].contains("llama"));
    job.items.pop();
    assert!(misfits(&job).unwrap_err().to_string().contains("of the pair for"));
    job.items.pop();
    job.metadata.set("general.type", "model");
    assert!(misfits(&job).unwrap_err().to_string().contains("not a LoRA adapter"));
}

#[test]
fn architecture_follows_the_base_configuration() {
    let out = tempfile::tempdir().unwrap();
    let (base, adapter) = (out.path().join("base"), out.path().join("adapter"));
    std::fs::create_dir(&base).unwrap();
    std::fs::create_dir(&adapter).unwrap();
    let text = r#"{"model_type": "mistral4", "num_attention_heads": 4, "hidden_size": 64, "num_hidden_layers": 2}"#;
    let config = format!(
        r#"{{"architectures": ["Mistral3ForConditionalGeneration"], "text_config": {text}}}"#
    );
    std::fs::write(base.join("config.json"), config).unwrap();
    let config = r#"{"peft_type": "LORA", "r": 2, "lora_alpha": 4}"#;
    std::fs::write(adapter.join("adapter_config.json"), config).unwrap();
    let name = "base_model.model.model.layers.0.self_attn.q_a_proj";
    let header = format!(
        r#"{{"{name}.lora_A.weight": {{"dtype": "F32", "shape": [2, 64], "data_offsets": [0, 512]}},
            "{name}.lora_B.weight": {{"dtype": "F32", "shape": [32, 2], "data_offsets": [512, 768]}}}}"#
    );
    let length = (header.len() as u64).to_le_bytes();
    let file = [&length[..], header.as_bytes(), &[0; 768]].concat();
    std::fs::write(adapter.join("adapter_model.safetensors"), file).unwrap();
    let checkpoint = Checkpoint::open_file(&peft::weights(&adapter)).unwrap();
    let plan = peft::plan(&adapter, &checkpoint, &base, None, &HfOptions::default()).unwrap();
    assert_eq!(plan.job.metadata.architecture(), Some("mistral4"));
    assert_eq!(plan.job.items[0].tensor.name, "blk.0.attn_q_a.weight.lora_a");
}

#[test]
fn adapters_that_cannot_be_right_are_refused() {
    let (dir, base, tuned) = tuned();
    let (base, tuned) = (Model::open(&base).unwrap(), Model::open(&tuned).unwrap());
    let job = || extract::extract(&base, &tuned, 2, &()).unwrap().job;
    let path = dir.path().join("adapter.gguf");
    let code = |job: &Job| {
        write(job, &path);
        let read = Adapter::read(&Model::open(&path).unwrap());
        read.err().map(|error| error.code())
    };
    const ALPHA: &str = "adapter.lora.alpha";
    assert_eq!(code(&job()), None);
    let alphas: [gguf::Value; 5] =
        [0.0f32.into(), f32::NAN.into(), f32::INFINITY.into(), 16u32.into(), "16".into()];
    for alpha in alphas {
        let mut job = job();
        job.metadata.set(ALPHA, alpha.clone());
        assert_eq!(code(&job), Some("adapter-damaged"), "{alpha:?}");
    }
    let mut missing = job();
    missing.metadata.remove(ALPHA);
    assert_eq!(code(&missing), Some("adapter-damaged"));
    for half in 0..2 {
        let mut job = job();
        job.items.remove(half);
        assert_eq!(code(&job), Some("adapter-incomplete"), "half {half}");
    }
    let mut activated = job();
    activated.metadata.set("adapter.alora.invocation_tokens", gguf::Array::from(&[5u32, 6][..]));
    assert_eq!(code(&activated), Some("adapter-unsupported"));
    let mut other = job();
    other.metadata.set("adapter.type", "control_vector");
    assert_eq!(code(&other), Some("adapter-none"));
    let mut nan = job();
    nan.check_finite = false;
    if let Content::Values(values) = &mut nan.items[1].tensor.content {
        values[3] = f32::NAN;
    }
    assert_eq!(code(&nan), Some("weights-unusable"));
}

#[test]
fn extraction_refuses_and_bounds_extreme_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str, value: &dyn Fn(usize) -> f32| {
        let path = dir.path().join(name);
        let items = [tensor("blk.0.attn_q.weight", &[32, 64], value)].into();
        let mut metadata = Metadata::new();
        metadata.set("general.architecture", "llama");
        write(&Job { metadata, items, check_finite: false, order: ByteOrder::Little }, &path);
        Model::open(&path).unwrap()
    };
    let number = |i: usize| ((i * 37) % 101) as f32 / 50.0 - 1.0;
    let base = open("base", &number);
    for bad in [f32::NAN, f32::INFINITY] {
        let tuned = open("tuned", &|i| if i == 40 { bad } else { number(i) });
        let error = extract::extract(&base, &tuned, 2, &()).err().unwrap();
        assert_eq!(error.code(), "weights-unusable", "{bad}");
    }
    let tuned = open("tuned", &|i| if i == 40 { 1e19 } else { number(i) });
    let extraction = extract::extract(&base, &tuned, 2, &()).unwrap();
    assert!(extraction.captured[0].1 > 0.999_999, "{:?}", extraction.captured);
}
