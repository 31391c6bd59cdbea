//! Whole checkpoints: every key, value, tensor and byte equals what llama.cpp's converter writes.

use std::path::Path;

use gguf::{Bytes, Gguf, Value};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf::{self, HfOptions};
use gguf_quantize::imatrix::Imatrix;
use gguf_quantize::importance::Importance;
use gguf_quantize::recipe::Target;
use gguf_store::{Existing, Model, Overwrite};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::fixtures::reference_data;

/// Reference checkpoints.
const FOLDERS: [&str; 21] = [
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "mixed-llama",
    "gpt2",
    "gpt_neox",
    "mpt",
    "bloom",
    "falcon",
    "mamba",
    "bert",
    "gemma2",
    "gemma3",
    "phi3",
    "stablelm",
    "olmo2",
    "qwen3moe",
    "gptq-llama",
    "fp8-llama",
];

fn convert(dir: &Path, out: &Path, outtype: &str, name: Option<&str>) {
    // A test may convert to one path several times.
    let _ = std::fs::remove_file(out);
    let checkpoint = Checkpoint::open(dir).unwrap();
    let outtype: Target = outtype.parse().unwrap();
    let model_name = name.map(str::to_owned);
    let options = HfOptions { outtype: Some(outtype), model_name, ..HfOptions::default() };
    let conversion = hf::plan(dir, &checkpoint, &options).unwrap();
    conversion.job.write(out, &Overwrite::default(), &()).unwrap();
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn json(path: &Path) -> Json {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn reference_checkpoints_equal_llama_cpps_conversion() {
    let Some(data) = reference_data() else { return };
    let out = tempfile::tempdir().unwrap();
    for folder in FOLDERS {
        for outtype in ["f32", "f16"] {
            let dir = data.join("zoo").join(folder);
            let mut manifest = json(&dir.join(format!("official.{outtype}.manifest.json")));
            follow_references(&mut manifest, &dir);
            let path = out.path().join(format!("{folder}.gguf"));
            convert(&dir, &path, outtype, Some(&format!("zoo-{folder}-shared")));
            let bytes = Bytes::from(std::fs::read(&path).unwrap());
            let model = Gguf::read(&bytes).unwrap();
            check_keys(&model, &manifest["kv"], folder);
            check_tensors(&model, manifest["tensors"].as_array().unwrap(), folder);
            // The conversion adds no keys of its own, so that the whole file is the same.
            if folder != "mamba" {
                assert_eq!(digest(&bytes), manifest["sha256"], "{folder} {outtype}: whole file");
            }
        }
    }
}

/// A conversion without `tokenizer.model` has the same tokens, token types and merge order.
#[test]
fn gemma_converts_from_tokenizer_json() {
    let Some(data) = reference_data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let zoo = data.join("zoo/gemma3");
    for file in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(zoo.join(file), dir.path().join(file)).unwrap();
    }
    let (with, without) = (dir.path().join("with.gguf"), dir.path().join("without.gguf"));
    convert(&zoo, &with, "f16", None);
    convert(dir.path(), &without, "f16", None);
    let [with, without] = [with, without].map(|path| Bytes::from(std::fs::read(path).unwrap()));
    let [with, without] = [&with, &without].map(|bytes| Gguf::read(bytes).unwrap());
    let list = |model: &Gguf, key| as_json(model.metadata().get(key).unwrap());
    for key in ["tokenizer.ggml.tokens", "tokenizer.ggml.token_type"] {
        assert_eq!(list(&with, key), list(&without, key), "{key}");
    }
    // Runtimes only compare the scores of merged tokens.
    let order = |model: &Gguf| {
        let scores = list(model, "tokenizer.ggml.scores");
        let tokens = list(model, "tokenizer.ggml.tokens");
        let types = list(model, "tokenizer.ggml.token_type");
        let mut merged: Vec<usize> = (0..tokens.as_array().unwrap().len())
            .filter(|&id| types[id] == 1 && tokens[id].as_str().unwrap().chars().count() > 1)
            .collect();
        merged.sort_by(|&a, &b| {
            scores[b].as_f64().unwrap().total_cmp(&scores[a].as_f64().unwrap()).then(a.cmp(&b))
        });
        merged
    };
    assert_eq!(order(&with), order(&without));
}

/// Replaces references to the other manifest, which holds long arrays once.
fn follow_references(manifest: &mut Json, dir: &Path) {
    for (key, entry) in manifest["kv"].as_object_mut().unwrap() {
        let Some(other) = entry["value"].get("see").map(|see| see.as_str().unwrap()) else {
            continue;
        };
        entry["value"] = json(&dir.join(other))["kv"][key]["value"].take();
    }
}

fn check_keys(model: &Gguf, expected: &Json, folder: &str) {
    let expected: Vec<_> =
        expected.as_object().unwrap().iter().filter(|(k, _)| !k.starts_with("GGUF.")).collect();
    let keys: Vec<_> = model.metadata().iter().map(|(key, _)| key).collect();
    assert_eq!(keys, expected.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), "{folder}");
    for ((key, value), (_, expected)) in model.metadata().iter().zip(expected) {
        assert_eq!(value.value_type().name(), expected["type"][0], "{folder}: {key}");
        if let Some(array) = value.as_array() {
            assert_eq!(array.element_type().name(), expected["type"][1], "{folder}: {key}");
        }
        assert_eq!(as_json(value), expected["value"], "{folder}: {key}");
    }
}

/// Returns a value as the manifest has it: F32 widened to F64.
fn as_json(value: &Value) -> Json {
    match value {
        Value::Array(array) => array.iter().map(|value| as_json(&value)).collect(),
        Value::String(bytes) => std::str::from_utf8(bytes).unwrap().into(),
        Value::Bool(value) => (*value).into(),
        Value::F32(value) => f64::from(*value).into(),
        integer => integer.to_i64().unwrap().into(),
    }
}

fn check_tensors(model: &Gguf, expected: &[Json], folder: &str) {
    assert_eq!(model.tensors().len(), expected.len(), "{folder}");
    for (tensor, expected) in model.tensors().iter().zip(expected) {
        let name = &*tensor.name;
        assert_eq!(name, expected["name"], "{folder}");
        assert_eq!(tensor.tensor_type.name(), expected["type"].as_str().unwrap(), "{name}");
        assert_eq!(Json::from(tensor.shape.to_vec()), expected["ne"], "{folder}: {name}");
        // llama.cpp's converter computes the exponential with the math library of its machine, see
        // `mamba_decays_are_rounded_once`.
        if folder == "mamba" && name.ends_with(".ssm_a") {
            continue;
        }
        assert_eq!(digest(model.data(tensor).unwrap()), expected["sha256"], "{folder}: {name}");
    }
}

/// `-exp(A_log)` is computed in F64 and rounded once. The manifest has no digest of it.
#[test]
fn mamba_decays_are_rounded_once() {
    let Some(data) = reference_data() else { return };
    let dir = data.join("zoo/mamba");
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("mamba.gguf");
    convert(&dir, &path, "f16", None);
    let bytes = Bytes::from(std::fs::read(&path).unwrap());
    let model = Gguf::read(&bytes).unwrap();
    let checkpoint = Checkpoint::open(&dir).unwrap();
    for layer in 0..2 {
        let foreign = format!("backbone.layers.{layer}.mixer.A_log");
        let entry = checkpoint.entries.iter().find(|entry| entry.name == foreign).unwrap();
        let mut stored = vec![0; 4 * 512 * 16];
        checkpoint.files[entry.file].source.read_at(&mut stored, entry.offset).unwrap();
        let wanted: Vec<u8> = stored
            .chunks_exact(4)
            .map(|x| -f64::from(f32::from_le_bytes(x.try_into().unwrap())).exp() as f32)
            .flat_map(f32::to_le_bytes)
            .collect();
        let ours = format!("blk.{layer}.ssm_a");
        let tensor = model.tensors().iter().find(|tensor| *tensor.name == *ours).unwrap();
        assert!(model.data(tensor).unwrap() == wanted, "{ours}");
    }
}

/// Models that llama.cpp's converter does not support keep every element of the checkpoint.
#[test]
fn models_unknown_to_llama_cpp_keep_their_values() {
    let Some(data) = reference_data() else { return };
    let out = tempfile::tempdir().unwrap();
    for (folder, names) in [("gptj", GPTJ), ("rwkv", RWKV), ("whisper", WHISPER)] {
        let dir = data.join("zoo").join(folder);
        let path = out.path().join(format!("{folder}.gguf"));
        convert(&dir, &path, "f32", None);
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let model = Gguf::read(&bytes).unwrap();
        let checkpoint = Checkpoint::open(&dir).unwrap();
        let mut compared = 0;
        for entry in &checkpoint.entries {
            if entry.name.ends_with(".attn.bias") || entry.name.ends_with(".masked_bias") {
                continue;
            }
            let mut ours = names.iter().fold(entry.name.clone(), |name, (a, b)| name.replace(a, b));
            if !ours.ends_with(".weight") && !ours.ends_with(".bias") {
                ours += ".weight";
            }
            let tensor = model.tensors().iter().find(|tensor| *tensor.name == *ours);
            let tensor = tensor.unwrap_or_else(|| panic!("{folder}: {} is not {ours}", entry.name));
            let mut shape: Vec<u64> = entry.shape.iter().rev().copied().collect();
            while shape.last() == Some(&1) {
                shape.pop();
            }
            assert_eq!(tensor.shape.to_vec(), shape, "{ours}");
            let count: u64 = shape.iter().product();
            let mut stored = vec![0; entry.tensor_type.byte_len(&[count]).unwrap() as usize];
            checkpoint.files[entry.file].source.read_at(&mut stored, entry.offset).unwrap();
            let mut values = vec![0.0; count as usize];
            gguf_quant::decode_row(entry.tensor_type, &stored, &mut values).unwrap();
            let wanted: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
            assert!(model.data(tensor).unwrap() == wanted, "{folder}: {ours}");
            compared += 1;
        }
        assert_eq!(compared, model.tensors().len(), "{folder}");
        let (findings, _) = gguf_check::check(&bytes);
        let bad = findings.iter().find(|finding| finding.severity != gguf::Severity::Note);
        assert!(bad.is_none(), "{folder}: {}", bad.unwrap());
    }
}

/// Replacements that turn checkpoint tensor names into GGUF names, in order.
const GPTJ: &[(&str, &str)] = &[
    ("transformer.", ""),
    ("h.0.", "blk.0."),
    ("h.1.", "blk.1."),
    ("attn.out_proj", "attn_output"),
    ("attn.q_proj", "attn_q"),
    ("attn.k_proj", "attn_k"),
    ("attn.v_proj", "attn_v"),
    ("mlp.fc_in", "ffn_up"),
    ("mlp.fc_out", "ffn_down"),
    ("ln_1", "attn_norm"),
    ("ln_f", "output_norm"),
    ("lm_head", "output"),
    ("wte", "token_embd"),
];
const RWKV: &[(&str, &str)] = &[
    ("rwkv.", ""),
    ("blocks.0.pre_ln", "token_embd_norm"),
    ("blocks.", "blk."),
    ("ln1", "attn_norm"),
    ("ln2", "attn_norm_2"),
    ("ln_out", "output_norm"),
    ("head", "output"),
    ("embeddings", "token_embd"),
    ("feed_forward.time_mix_key", "channel_mix_lerp_k"),
    ("feed_forward.time_mix_receptance", "channel_mix_lerp_r"),
    ("feed_forward.", "channel_mix_"),
    ("attention.time_mix_key", "time_mix_lerp_k"),
    ("attention.time_mix_value", "time_mix_lerp_v"),
    ("attention.time_mix_receptance", "time_mix_lerp_r"),
    ("attention.time_", "time_mix_"),
    ("attention.", "time_mix_"),
];
const WHISPER: &[(&str, &str)] = &[
    ("model.decoder.embed_tokens", "token_embd"),
    ("model.encoder.", "enc."),
    ("model.decoder.", "dec."),
    ("layers.", "blk."),
    ("embed_positions", "position_embd"),
    ("self_attn_layer_norm", "attn_norm"),
    ("encoder_attn_layer_norm", "cross_attn_norm"),
    ("final_layer_norm", "ffn_norm"),
    ("layer_norm", "output_norm"),
    ("encoder_attn.out_proj", "cross_attn_o"),
    ("encoder_attn.q_proj", "cross_attn_q"),
    ("encoder_attn.k_proj", "cross_attn_k"),
    ("encoder_attn.v_proj", "cross_attn_v"),
    ("self_attn.out_proj", "attn_o"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("fc1", "ffn_up"),
    ("fc2", "ffn_down"),
];

/// Every quantization type that needs no importance matrix has the tensor types and bytes of llama.cpp's quantizer,
/// in one pass from the checkpoint and in two passes through an F16 file. The others fail, as in llama.cpp.
#[test]
fn tiny_kjv_equals_llama_cpps_quantizer() {
    let Some(data) = reference_data() else { return };
    let reference = json(&data.join("tiny-kjv-llama/reference.json"));
    let source = data.join("tiny-kjv-llama/Tiny-KJV-Llama-4M");
    let out = tempfile::tempdir().unwrap();
    let f16 = out.path().join("f16.gguf");
    convert(&source, &f16, "f16", None);
    let model = Model::open(&f16).unwrap();
    let (mut made, mut refused) = (0, 0);
    for (mix, expected) in reference.as_object().unwrap() {
        if mix.ends_with("+imatrix") {
            continue;
        }
        let quantization = gguf_quantize::plan(&model, mix.parse().unwrap(), &Default::default());
        if expected.get("refused").is_some() {
            assert!(quantization.is_err(), "{mix}");
            refused += 1;
            continue;
        }
        let path = out.path().join("out.gguf");
        let job = quantization.unwrap().job;
        job.write(&path, &Overwrite::new(Existing::Replace), &()).unwrap();
        check_digests(&std::fs::read(&path).unwrap().into(), expected, mix);
        convert(&source, &path, mix, None);
        check_digests(&std::fs::read(&path).unwrap().into(), expected, mix);
        made += 1;
    }
    assert_eq!((made, refused), (23, 9));
}

/// Every quantization type with an importance matrix in GGUF.
#[test]
fn tiny_kjv_with_an_imatrix_equals_llama_cpps_quantizer() {
    let Some(data) = reference_data() else { return };
    let reference = json(&data.join("tiny-kjv-llama/reference.json"));
    let out = tempfile::tempdir().unwrap();
    let f16 = out.path().join("f16.gguf");
    convert(&data.join("tiny-kjv-llama/Tiny-KJV-Llama-4M"), &f16, "f16", None);
    let model = Model::open(&f16).unwrap();
    let options = gguf_quantize::QuantizeOptions {
        importance: Some(importance(&data.join("tiny-kjv-llama/imatrix.gguf"))),
        ..Default::default()
    };
    let mut made = 0;
    for (name, expected) in reference.as_object().unwrap() {
        let Some(mix) = name.strip_suffix("+imatrix") else { continue };
        let job = gguf_quantize::plan(&model, mix.parse().unwrap(), &options).unwrap().job;
        let path = out.path().join("out.gguf");
        job.write(&path, &Overwrite::new(Existing::Replace), &()).unwrap();
        check_digests(&std::fs::read(&path).unwrap().into(), expected, name);
        made += 1;
    }
    assert_eq!(made, 29);
}

/// The legacy format rounds the weights.
#[test]
fn gguf_and_legacy_imatrix_have_similar_weights() {
    let Some(data) = reference_data() else { return };
    let new = importance(&data.join("tiny-kjv-llama/imatrix.gguf")).weights;
    let old = importance(&data.join("tiny-kjv-llama/imatrix.dat")).weights;
    assert_eq!(new.len(), 28);
    assert_eq!(new.len(), old.len());
    for (name, new) in &new {
        let old = &old[name];
        assert_eq!(new.len(), old.len());
        // Two roundings of 2^-24 each: a multiplication and a division.
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= a.abs() * 2.4e-7;
        assert!(new.iter().zip(&**old).all(close), "{name}");
    }
}

fn importance(path: &Path) -> Importance {
    let imatrix = Imatrix::open(path).unwrap();
    let weights = |name: &String| (name.clone(), imatrix.importance(name).unwrap().into());
    Importance { weights: imatrix.entries.keys().map(weights).collect(), is_partial: false }
}

fn check_digests(bytes: &Bytes, expected: &Json, mix: &str) {
    let model = Gguf::read(bytes).unwrap();
    let expected = expected["tensors"].as_object().unwrap();
    assert_eq!(model.tensors().len(), expected.len(), "{mix}");
    for tensor in model.tensors() {
        let expected = &expected[&*tensor.name];
        let name = format!("{mix}: {}", tensor.name);
        assert_eq!(tensor.tensor_type.name(), expected[0].as_str().unwrap(), "{name}");
        assert_eq!(digest(model.data(tensor).unwrap())[..16], expected[1], "{name}");
    }
}
