//! Converts every file of the reference data, all written by the original tools.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gguf::{Severity, Value};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use gguf_legacy::{Fidelity, LegacyOptions, Overrides};
use gguf_pipeline::Job;
use gguf_store::Model;
use serde_json::Value as Json;

use super::reference_data::{data, digest, digest_floats, json};
use super::{Tensor, convert, tensors, write};

/// Every file, and the folder of its checkpoint.
const FILES: &[(&str, &str)] = &[
    ("bloom/ggml-f16.bin", "bloom/source"),
    ("bloom/ggml-q4_0.bin", "bloom/source"),
    ("dollyv2/ggml-f16.bin", "gptneox-parallel/source"),
    ("dollyv2/ggml-qnt2-q4_0.bin", "gptneox-parallel/source"),
    ("dollyv2-noparres/ggml-f16.bin", "gptneox-parallel/source"),
    ("dollyv2-noparres/ggml-qnt0-q4_0.bin", "gptneox-parallel/source"),
    ("falcon/ggcc-f16.bin", "falcon/source"),
    ("falcon/ggcc-q4_0.bin", "falcon/source"),
    ("falcon/ggmf-f16.bin", "falcon/source"),
    ("gpt2/ggml-f16.bin", "gpt2/source"),
    ("gpt2/ggml-f32.bin", "gpt2/source"),
    ("gpt2/ggml-qnt0-q4_0.bin", "gpt2/source"),
    ("gpt2/ggml-qnt0-q4_2.bin", "gpt2/source"),
    ("gpt2/ggml-qnt0-q5_1.bin", "gpt2/source"),
    ("gpt2/ggml-qnt0-q8_0.bin", "gpt2/source"),
    ("gpt2/ggml-qnt1-q4_0.bin", "gpt2/source"),
    ("gpt2/ggml-qnt1-q8_0.bin", "gpt2/source"),
    ("gpt2/ggml-qnt2-q4_0.bin", "gpt2/source"),
    ("gpt2/ggml-qnt2-q5_1.bin", "gpt2/source"),
    ("gptj/ggml-f16.bin", "gptj/source"),
    ("gptj/ggml-qnt0-q4_0.bin", "gptj/source"),
    ("gptj/ggml-qnt0-q4_1.bin", "gptj/source"),
    ("gptj/ggml-qnt1-q4_0.bin", "gptj/source"),
    ("gptj/ggml-qnt2-q4_0.bin", "gptj/source"),
    ("gptneox-parallel/ggml-f16.bin", "gptneox-parallel/source"),
    ("gptneox-parallel/ggml-qnt0-q4_0.bin", "gptneox-parallel/source"),
    ("gptneox-parallel/ggml-qnt1-q4_0.bin", "gptneox-parallel/source"),
    ("gptneox-parallel/ggml-qnt2-q4_0.bin", "gptneox-parallel/source"),
    ("gptneox-sequential/ggml-f16.bin", "gptneox-sequential/source"),
    ("gptneox-sequential/ggml-qnt0-q5_0.bin", "gptneox-sequential/source"),
    ("llama/ggjt1-f16-nano-migrated.bin", "llama/source-nano"),
    ("llama/ggjt1-f16.bin", "llama/source-main"),
    ("llama/ggjt1-q4_0.bin", "llama/source-main"),
    ("llama/ggjt1-q4_2.bin", "llama/source-main"),
    ("llama/ggjt1-q4_3.bin", "llama/source-main"),
    ("llama/ggjt1-q5_0.bin", "llama/source-main"),
    ("llama/ggjt1-q8_0.bin", "llama/source-main"),
    ("llama/ggjt2-q4_0.bin", "llama/source-main"),
    ("llama/ggjt2-q5_0.bin", "llama/source-main"),
    ("llama/ggjt3-f16-nano.bin", "llama/source-nano"),
    ("llama/ggjt3-f32-nano.bin", "llama/source-nano"),
    ("llama/ggjt3-q2_K.bin", "llama/source-main"),
    ("llama/ggjt3-q3_K_L.bin", "llama/source-main"),
    ("llama/ggjt3-q3_K_S.bin", "llama/source-main"),
    ("llama/ggjt3-q4_0.bin", "llama/source-main"),
    ("llama/ggjt3-q4_K_M.bin", "llama/source-main"),
    ("llama/ggjt3-q4_K_S.bin", "llama/source-main"),
    ("llama/ggjt3-q5_K_M.bin", "llama/source-main"),
    ("llama/ggjt3-q6_K.bin", "llama/source-main"),
    ("llama/ggjt3-q8_0.bin", "llama/source-main"),
    ("llama/ggmf1-f16-nano-2part.bin", "llama/source-nano"),
    ("llama/ggmf1-q4_0.bin", "llama/source-main"),
    ("llama/ggml-f16-nano-2part.bin", "llama/source-nano"),
    ("llama/ggml-f16-nano.bin", "llama/source-nano"),
    ("llama/ggml-f32-nano.bin", "llama/source-nano"),
    ("llama/ggml-q4_0.bin", "llama/source-main"),
    ("mpt/ggml-f16.bin", "mpt/source"),
    ("mpt/ggml-qnt1-q4_0.bin", "mpt/source"),
    ("mpt/ggml-qnt2-q5_0.bin", "mpt/source"),
    ("whisper/ggml-f16.bin", "whisper/source"),
    ("whisper/ggml-qnt0-q4_0.bin", "whisper/source"),
    ("whisper/ggml-qnt2-q4_0.bin", "whisper/source"),
];

/// Second files of models in two files.
const PARTS: &[&str] = &["llama/ggmf1-f16-nano-2part.bin.1", "llama/ggml-f16-nano-2part.bin.1"];

const GGUFS: &[&str] =
    &["llama/gguf1-q4_0.gguf", "llama/gguf2-f16-nano.gguf", "llama/gguf2-q4_0.gguf"];

fn reference(data: &Path, file: &str) -> Json {
    let (folder, name) = file.split_once('/').unwrap();
    let stem = Path::new(name).file_stem().unwrap().to_str().unwrap();
    json(&data.join(folder).join("ref").join(format!("{stem}.json")))
}

#[test]
fn every_file_is_listed() {
    let Some(data) = data() else { return };
    let mut found = BTreeSet::new();
    for folder in std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap()) {
        if folder.path().is_dir() {
            for file in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()) {
                if file.path().is_file() {
                    let (folder, name) = (folder.file_name(), file.file_name());
                    found.insert(format!("{}/{}", folder.display(), name.display()));
                }
            }
        }
    }
    let named = FILES.iter().map(|(file, _)| file).chain(PARTS).chain(GGUFS);
    assert_eq!(found, named.map(|name| (*name).to_owned()).collect());
}

/// A conversion without options decodes to exactly the values that the original code decodes.
#[test]
fn default_conversion_is_lossless() {
    let Some(data) = data() else { return };
    for (file, _) in FILES.iter().filter(|(file, _)| !file.contains("2part")) {
        let converted = convert(&data.join(file), &LegacyOptions::default())
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        converted.assert_clean();
        let found = converted.tensors();
        let reference = reference(&data, file);
        let stored = reference["tensors"].as_array().unwrap();
        let is_tied = file.starts_with("gpt2") || file.starts_with("bloom");
        let expected: Vec<_> = stored
            .iter()
            .filter(|tensor| {
                let name = tensor["name"].as_str().unwrap();
                !(is_tied && ["model/lm_head", "output.weight"].contains(&name))
            })
            .collect();
        let filters = usize::from(file.starts_with("whisper"));
        assert_eq!(found.len(), expected.len() + filters, "{file}");
        for (tensor, stored) in found.iter().zip(expected) {
            let name = stored["name"].as_str().unwrap();
            let mut floats = tensor.floats();
            if tensor.name.contains(".attn_qkv.") && name.starts_with("gpt_neox") {
                floats = interleave_heads(&floats, tensor.dims.last().copied().unwrap(), 4);
            }
            let what = format!("{file}: {name} as {} {}", tensor.name, tensor.tensor_type);
            assert_eq!(digest_floats(&floats), stored["sha256_f32"].as_str().unwrap(), "{what}");
        }
    }
}

/// Converts Q, K and V one after another to the interleaving per head that GPT-NeoX files have.
fn interleave_heads(floats: &[f32], rows: u64, heads: usize) -> Vec<f32> {
    let row = floats.len() / rows as usize;
    let head = rows as usize / 3 / heads * row;
    let block = |head_no: usize, kind: usize| {
        let start = (kind * heads + head_no) * head;
        floats[start..start + head].to_vec()
    };
    (0..heads)
        .flat_map(|i| (0..3).map(move |kind| (i, kind)))
        .flat_map(|(i, k)| block(i, k))
        .collect()
}

/// A model in two files converts to the same tensors as the output of the original migration
/// script, and as the model in one file.
#[test]
fn parts_are_joined() {
    let Some(data) = data() else { return };
    let whole = |name: &str| {
        convert(&data.join("llama").join(name), &LegacyOptions::default()).unwrap().tensors()
    };
    let migrated = whole("ggjt1-f16-nano-migrated.bin");
    assert!(whole("ggmf1-f16-nano-2part.bin") == migrated);
    assert!(whole("ggml-f16-nano-2part.bin") == migrated);
    assert!(whole("ggml-f16-nano.bin") == migrated);
}

/// Keys, types and bytes equal those of llama.cpp's current converter, after a fix of its shapes.
#[test]
fn llama_matches_the_llama_cpp_converter() {
    let Some(data) = data() else { return };
    let overrides =
        Overrides { context_length: Some(512), epsilon: Some(1e-5), ..Overrides::default() };
    let options = LegacyOptions { overrides, ..LegacyOptions::default() };
    let arrays = arrays_by_digest(&data);
    let mut compared = 0;
    for (file, _) in FILES.iter().filter(|(file, _)| file.starts_with("llama/")) {
        let stem = file.strip_prefix("llama/").unwrap().strip_suffix(".bin").unwrap();
        let expected = data.join("llama/ref").join(format!("{stem}.gguf-expected.json"));
        if !expected.is_file() {
            continue;
        }
        let expected = json(&expected);
        let converted = convert(&data.join(file), &options).unwrap();
        let keys = converted.keys();
        let written: Vec<&str> = keys
            .iter()
            .map(|(key, _)| key)
            .filter(|key| *key != "general.quantization_version")
            .collect();
        let wanted = expected["kv"].as_object().unwrap();
        let wanted: Vec<_> = wanted.iter().filter(|(key, _)| !key.starts_with("GGUF.")).collect();
        assert_eq!(written, wanted.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>());
        for (key, field) in wanted {
            let (value, what) = (keys.get(key).unwrap(), format!("{file}: {key}"));
            match (field["types"][0].as_str().unwrap(), value) {
                ("STRING", Value::String(_)) => {
                    assert_eq!(value.as_str(), field["value"].as_str(), "{what}");
                }
                ("UINT32", Value::U32(number)) => {
                    assert_eq!(Some(u64::from(*number)), field["value"].as_u64(), "{what}");
                }
                ("FLOAT32", Value::F32(number)) => {
                    assert_eq!(Some(f64::from(*number)), field["value"].as_f64(), "{what}");
                }
                ("ARRAY", Value::Array(array)) => {
                    let (field, len) = (&field["value"], array.len());
                    assert_eq!(Some(len), field["len"].as_u64(), "{what}");
                    let digest = field["sha256_of_repr"].as_str().unwrap();
                    assert!(arrays.get(digest).is_none_or(|same| same == value), "{what}");
                    compared += usize::from(arrays.contains_key(digest));
                }
                other => panic!("{what}: {other:?}"),
            }
        }
        let found = converted.tensors();
        let wanted = expected["tensors"].as_array().unwrap();
        assert_eq!(found.len(), wanted.len(), "{file}");
        for (tensor, wanted) in found.iter().zip(wanted) {
            assert_eq!(tensor.name, wanted["name"].as_str().unwrap(), "{file}");
            let shape: Vec<u64> =
                wanted["shape"].as_array().unwrap().iter().filter_map(Json::as_u64).collect();
            assert_eq!(tensor.dims, shape, "{file}: {}", tensor.name);
            assert_eq!(tensor.tensor_type.name(), wanted["type"].as_str().unwrap(), "{file}");
            assert_eq!(digest(&tensor.bytes), wanted["sha256"].as_str().unwrap(), "{file}");
        }
    }
    assert!(compared >= 30, "only {compared} arrays compared in full");
}

/// The expected arrays are given as digests of their Python representation. Three files are
/// available in full, and nearly all others have the same arrays.
fn arrays_by_digest(data: &Path) -> BTreeMap<String, Value> {
    let mut arrays = BTreeMap::new();
    for stem in ["ggjt3-q2_K", "ggjt3-q4_0", "ggml-f32-nano"] {
        let model = Model::open(&data.join(format!("llama/gguf-expected/{stem}.gguf"))).unwrap();
        let expected = json(&data.join(format!("llama/ref/{stem}.gguf-expected.json")));
        for (key, field) in expected["kv"].as_object().unwrap() {
            if let Some(digest) = field["value"]["sha256_of_repr"].as_str() {
                let value = model.metadata().get(key).unwrap().clone();
                arrays.insert(digest.to_owned(), value);
            }
        }
    }
    arrays
}

/// An unquantized file and its checkpoint convert to the same tensors, if the class of the
/// checkpoint is supported.
#[test]
fn unquantized_files_match_their_checkpoints() {
    let Some(data) = data() else { return };
    let mut compared = 0;
    for (file, source) in FILES.iter().filter(|(file, _)| file.contains("f16")) {
        let source = data.join(source);
        if !source.join("config.json").is_file() {
            continue;
        }
        let config = json(&source.join("config.json"));
        let class = config["architectures"][0].as_str().unwrap();
        if !gguf_convert::classes().contains(&class) {
            continue;
        }
        let checkpoint = Checkpoint::open(&source).unwrap();
        let f32 = "f32".parse().ok();
        let options = hf::HfOptions { outtype: f32, ..hf::HfOptions::default() };
        let conversion = hf::plan(&source, &checkpoint, &options).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        write(&conversion.job, &path).unwrap();
        let options = LegacyOptions { outtype: f32, ..LegacyOptions::default() };
        let legacy = convert(&data.join(file), &options).unwrap();
        let sorted = |mut tensors: Vec<Tensor>| {
            tensors.sort_by(|a, b| a.name.cmp(&b.name));
            tensors
        };
        assert!(sorted(legacy.tensors()) == sorted(tensors(&path)), "{file}");
        compared += 1;
    }
    assert!(compared >= 5, "only {compared} files compared");
}

/// A folder with configuration and tokenizer supplies merges, scores and hyperparameters that the
/// file does not store.
#[test]
fn metadata_dir_supplies_missing_values() {
    let Some(data) = data() else { return };
    for (file, source) in FILES.iter().filter(|(file, _)| !file.starts_with("whisper")) {
        let metadata_dir = Some(data.join(source));
        let options = LegacyOptions { metadata_dir, ..LegacyOptions::default() };
        let converted = convert(&data.join(file), &options).unwrap();
        converted.assert_clean();
        let keys = converted.keys();
        let has = |key: &str| keys.get(key).is_some();
        assert!(has("tokenizer.ggml.merges") || has("tokenizer.ggml.scores"), "{file}");
        assert!(!converted.notes.iter().any(|note| note.contains("--metadata-dir")), "{file}");
        if file.starts_with("llama") {
            assert_eq!(keys.u64("llama.context_length"), Some(512), "{file}");
            let epsilon = keys.f64("llama.attention.layer_norm_rms_epsilon");
            assert_eq!(epsilon, Some(f64::from(1e-5f32)), "{file}");
        }
    }
}

/// Merges recovered from the token order equal the original ones.
#[test]
fn recovered_merges_match_the_original() {
    let Some(data) = data() else { return };
    for folder in ["gpt2", "gptj", "mpt", "falcon"] {
        let name = if folder == "falcon" { "ggmf-f16.bin" } else { "ggml-f16.bin" };
        let converted = convert(&data.join(folder).join(name), &LegacyOptions::default()).unwrap();
        let keys = converted.keys();
        let merges = keys.array("tokenizer.ggml.merges").unwrap();
        let merges: Vec<String> = merges
            .strings()
            .unwrap()
            .map(|merge| String::from_utf8(merge.to_vec()).unwrap())
            .collect();
        let text = std::fs::read_to_string(data.join(folder).join("source/merges.txt")).unwrap();
        let original: Vec<&str> =
            text.lines().filter(|line| !line.starts_with("#version")).collect();
        assert_eq!(merges, original, "{folder}");
    }
}

/// Tokens from the file equal those of the checkpoint's tokenizer.
#[test]
fn tokens_match_the_tokenizer() {
    let Some(data) = data() else { return };
    for (file, source) in [
        ("gpt2/ggml-f16.bin", "gpt2/source"),
        ("gptj/ggml-f16.bin", "gptj/source"),
        ("mpt/ggml-f16.bin", "mpt/source"),
        ("falcon/ggcc-f16.bin", "falcon/source"),
        ("llama/ggjt1-f16.bin", "llama/source-main"),
        ("llama/ggmf1-q4_0.bin", "llama/source-main"),
    ] {
        let from_file = convert(&data.join(file), &LegacyOptions::default()).unwrap().keys();
        let metadata_dir = Some(data.join(source));
        let options = LegacyOptions { metadata_dir, ..LegacyOptions::default() };
        let from_dir = convert(&data.join(file), &options).unwrap().keys();
        for key in ["tokens", "token_type", "merges", "bos_token_id", "eos_token_id"] {
            let key = format!("tokenizer.ggml.{key}");
            assert_eq!(from_file.get(&key), from_dir.get(&key), "{file}: {key}");
        }
    }
}

/// Conversion to the stored type keeps the quants and rounds the scales; it is lossless if the
/// scales are half precision values.
#[test]
fn quants_are_kept_in_the_same_type() {
    let Some(data) = data() else { return };
    for (file, outtype, fidelity) in [
        ("llama/ggml-q4_0.bin", "q4_0", Fidelity::RoundedScales),
        ("llama/ggjt1-q4_0.bin", "q4_0", Fidelity::Lossless),
        ("llama/ggjt1-q4_0.bin", "q8_0", Fidelity::Lossless),
        ("llama/ggjt1-q8_0.bin", "q8_0", Fidelity::RoundedScales),
        ("gptj/ggml-qnt0-q4_1.bin", "q4_1", Fidelity::RoundedScales),
        ("llama/ggjt1-q5_0.bin", "q5_0", Fidelity::Lossless),
        ("gpt2/ggml-qnt0-q4_2.bin", "q5_0", Fidelity::Requantized),
        ("llama/ggjt1-q4_3.bin", "q5_1", Fidelity::Requantized),
    ] {
        let exact = convert(&data.join(file), &LegacyOptions::default()).unwrap().tensors();
        let options = LegacyOptions { outtype: outtype.parse().ok(), ..LegacyOptions::default() };
        let converted = convert(&data.join(file), &options).unwrap();
        converted.assert_clean();
        let mut compared = 0;
        for ((tensor, exact), change) in
            converted.tensors().iter().zip(&exact).zip(&converted.changes)
        {
            // The mix can give the output matrix another type.
            if tensor.tensor_type.name().to_lowercase() != outtype {
                continue;
            }
            compared += 1;
            assert_eq!(change.fidelity, fidelity, "{file}: {}", tensor.name);
            let worst = tensor
                .floats()
                .iter()
                .zip(exact.floats())
                .map(|(a, b)| if *a == b { 0.0 } else { ((a - b) / b).abs() })
                .fold(0.0, f32::max);
            match fidelity {
                Fidelity::Lossless => assert_eq!(worst, 0.0, "{file}: {}", tensor.name),
                // Half precision has 11 significant bits. With a minimum, sums near zero can have a
                // larger relative error.
                Fidelity::RoundedScales if outtype != "q4_1" => {
                    assert!(worst <= 1.0 / 2048.0, "{file}: {} by {worst}", tensor.name);
                }
                _ => {}
            }
        }
        // Some files have output and embedding in other types.
        assert!(compared >= 8, "{file}: {compared}");
    }
}

#[test]
fn files_convert_to_mixes() {
    let Some(data) = data() else { return };
    let options = LegacyOptions { outtype: "q4_k_m".parse().ok(), ..LegacyOptions::default() };
    for file in ["llama/ggml-q4_0.bin", "llama/ggjt1-q4_3.bin", "llama/ggjt1-f16.bin"] {
        let converted = convert(&data.join(file), &options).unwrap();
        converted.assert_clean();
        assert_eq!(converted.keys().u64("general.file_type"), Some(15), "{file}");
    }
}

/// GGUF versions 1 and 2 are rewritten as version 3, without the NUL that terminated strings.
#[test]
fn old_gguf_versions_are_rewritten() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    for file in GGUFS {
        let model = Model::open(&data.join(file)).unwrap();
        let out: PathBuf = dir.path().join(Path::new(file).file_name().unwrap());
        write(&Job::copy(&model), &out).unwrap();
        let bytes = std::fs::read(&out).unwrap();
        assert_eq!(bytes[4..8], [3, 0, 0, 0]);
        let (findings, _) = gguf_check::check(&bytes.into());
        let bad: Vec<_> =
            findings.iter().filter(|finding| finding.severity > Severity::Note).collect();
        assert!(bad.is_empty(), "{file}: {bad:#?}");

        let reference = reference(&data, file);
        let name = |text: &str| text.strip_suffix('\0').unwrap_or(text).to_owned();
        for (tensor, stored) in tensors(&out).iter().zip(reference["tensors"].as_array().unwrap()) {
            assert_eq!(tensor.name, name(stored["name"].as_str().unwrap()), "{file}");
            assert_eq!(digest(&tensor.bytes), stored["sha256_raw"].as_str().unwrap(), "{file}");
            assert_eq!(digest_floats(&tensor.floats()), stored["sha256_f32"].as_str().unwrap());
        }
        let written = Model::open(&out).unwrap();
        let keys = written.metadata();
        for (key, field) in reference["kv"].as_object().unwrap() {
            let value = keys.get(&name(key)).unwrap_or_else(|| panic!("{file}: {key:?}"));
            if let (Some(text), Some(expected)) = (value.as_str(), field["value"].as_str()) {
                assert_eq!(text, name(expected), "{file}: {key:?}");
            }
        }
        let mut strings = keys.array("tokenizer.ggml.tokens").unwrap().strings().unwrap();
        assert!(!strings.any(|token| token.ends_with(b"\0")), "{file}");
    }
}
