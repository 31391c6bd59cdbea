//! Damaged checkpoints: the error is one line that names the cause and the file, and no output remains.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf::{self, HfOptions};
use gguf_store::{Existing, Overwrite};
use serde_json::{Value, json};

/// Copy of the demo model, which tests damage.
struct Case {
    dir: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/Tiny-KJV-Llama-4M");
        let dir = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(model).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn edit_config(&self, edit: impl FnOnce(&mut Value)) {
        let path = self.path("config.json");
        let mut config = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut config);
        std::fs::write(path, config.to_string()).unwrap();
    }

    fn edit_weights(&self, edit: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        edit(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    }

    fn convert(&self, outtype: &str) -> Result<(), Error> {
        let dir = self.dir.path();
        let checkpoint = Checkpoint::open(dir)?;
        let options = HfOptions { outtype: Some(outtype.parse().unwrap()), ..HfOptions::default() };
        let conversion = hf::plan(dir, &checkpoint, &options)?;
        conversion.job.write(&self.path("out.gguf"), &Overwrite::new(Existing::Replace), &())
    }

    /// Returns the error message of a conversion, and asserts that it leaves no file.
    fn failure(&self, outtype: &str) -> String {
        let before = self.listing();
        let message = self.convert(outtype).unwrap_err().to_string();
        assert_eq!(self.listing(), before, "{message}");
        assert!(!message.contains('\n'), "{message}");
        message
    }

    fn listing(&self) -> Vec<std::ffi::OsString> {
        let names = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

fn assert_mentions(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn undamaged_model_converts() {
    let case = Case::new();
    case.convert("q4_0").unwrap();
    assert!(case.path("out.gguf").is_file());
}

#[test]
fn truncated_weights_fail() {
    let case = Case::new();
    case.edit_weights(|bytes| bytes.truncate(bytes.len() - 1));
    assert_mentions(
        &case.failure("f16"),
        &["model.safetensors", "8397359 bytes; expected 8397360"],
    );
    case.edit_weights(|bytes| bytes.truncate(100));
    assert_mentions(&case.failure("f16"), &["model.safetensors", "exceeds the"]);
    case.edit_weights(|bytes| bytes.truncate(5));
    assert_mentions(&case.failure("f16"), &["only 5 bytes"]);
    case.edit_weights(|bytes| *bytes = b"version https://git-lfs.github.com/spec/v1\n".to_vec());
    assert_mentions(&case.failure("f16"), &["Git LFS pointer"]);
}

#[test]
fn weights_of_another_format_fail() {
    let case = Case::new();
    case.edit_weights(|bytes| bytes[8] = b'x');
    assert_mentions(&case.failure("f16"), &["not a valid safetensors header"]);
    std::fs::remove_file(case.path("model.safetensors")).unwrap();
    assert_mentions(&case.failure("f16"), &["has neither"]);
}

#[test]
fn missing_shards_fail() {
    let case = Case::new();
    let shard = "model-00001-of-00002.safetensors";
    std::fs::rename(case.path("model.safetensors"), case.path(shard)).unwrap();
    assert_mentions(&case.failure("f16"), &["model-00002-of-00002.safetensors"]);
    let index = json!({ "weight_map": { "lm_head.weight": "model-00002-of-00002.safetensors" } });
    std::fs::write(case.path("model.safetensors.index.json"), index.to_string()).unwrap();
    assert_mentions(&case.failure("f16"), &["index.json", "model-00002-of-00002.safetensors"]);
    let index = json!({ "weight_map": { "lm_head.bias": shard } });
    std::fs::write(case.path("model.safetensors.index.json"), index.to_string()).unwrap();
    assert_mentions(&case.failure("f16"), &["lm_head.bias"]);
    let index = json!({ "weight_map": { "lm_head.weight": "../../secret" } });
    std::fs::write(case.path("model.safetensors.index.json"), index.to_string()).unwrap();
    assert_mentions(&case.failure("f16"), &["not a file name"]);
}

#[test]
fn missing_config_field_fails() {
    for field in [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "rms_norm_eps",
        "vocab_size",
        "architectures",
    ] {
        let case = Case::new();
        case.edit_config(|config| drop(config.as_object_mut().unwrap().remove(field)));
        assert_mentions(&case.failure("f16"), &["config.json", field]);
    }
}

#[test]
fn config_of_another_model_fails() {
    let edits: [(&str, Value, &str); 7] = [
        ("num_hidden_layers", json!(3), "claims 3 layers"),
        ("num_hidden_layers", json!(5), "claims 5 layers"),
        ("num_attention_heads", json!(7), "heads"),
        ("hidden_size", json!(512), "token_embd.weight"),
        ("intermediate_size", json!(512), "ffn_"),
        ("hidden_size", json!("wide"), "hidden_size"),
        ("architectures", json!(["UnheardOfModel"]), "UnheardOfModel"),
    ];
    for (field, value, part) in edits {
        let case = Case::new();
        case.edit_config(|config| config[field] = value);
        assert_mentions(&case.failure("f16"), &["config.json", part][1..]);
    }
    let case = Case::new();
    std::fs::write(case.path("config.json"), "{").unwrap();
    assert_mentions(&case.failure("f16"), &["config.json", "line 1"]);
    std::fs::remove_file(case.path("config.json")).unwrap();
    assert_mentions(&case.failure("f16"), &["config.json"]);
}

#[test]
fn nan_and_infinite_weights_fail() {
    // The last tensor of the file belongs to the last layer; every element matters.
    // 0x7e00 is NaN in F16, 0x7c00 is infinity.
    for (bits, name) in [(0x7e00u16, "NaN"), (0x7c00, "inf")] {
        for outtype in ["f16", "f32", "q4_k_m", "q8_0"] {
            let case = Case::new();
            case.edit_weights(|bytes| {
                let at = bytes.len() - 2 * 300;
                bytes[at..at + 2].copy_from_slice(&bits.to_le_bytes());
            });
            assert_mentions(&case.failure(outtype), &["tensor `", name, "row ", "column "]);
        }
    }
}

#[test]
fn missing_tokenizer_fails() {
    let case = Case::new();
    std::fs::remove_file(case.path("tokenizer.model")).unwrap();
    assert_mentions(&case.failure("f16"), &["tokenizer"]);
}

#[test]
fn unwritable_outputs_fail() {
    let case = Case::new();
    let dir = case.dir.path();
    let checkpoint = Checkpoint::open(dir).unwrap();
    let conversion = hf::plan(dir, &checkpoint, &HfOptions::default()).unwrap();
    for target in ["nowhere/out.gguf", "."] {
        let result =
            conversion.job.write(&case.path(target), &Overwrite::new(Existing::Replace), &());
        assert!(matches!(result, Err(Error::Environment { .. } | Error::Caller(_))), "{target}");
    }
}

#[test]
fn cancelled_conversion_leaves_no_file() {
    let case = Case::new();
    let checkpoint = Checkpoint::open(case.dir.path()).unwrap();
    let conversion = hf::plan(case.dir.path(), &checkpoint, &HfOptions::default()).unwrap();
    let before = case.listing();
    let result = conversion.job.write(
        &case.path("out.gguf"),
        &Overwrite::new(Existing::Replace),
        &|_: u64| ControlFlow::Break(()),
    );
    assert!(matches!(result, Err(Error::Interrupted)));
    assert_eq!(case.listing(), before);
}

#[test]
fn output_does_not_depend_on_threads() {
    let case = Case::new();
    let checkpoint = Checkpoint::open(case.dir.path()).unwrap();
    let options = HfOptions { outtype: Some("q5_k_m".parse().unwrap()), ..HfOptions::default() };
    let conversion = hf::plan(case.dir.path(), &checkpoint, &options).unwrap();
    let files = [1, 2, 7].map(|threads| {
        let path = case.path(&format!("{threads}.gguf"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let overwrite = Overwrite::new(Existing::Replace);
        pool.install(|| conversion.job.write(&path, &overwrite, &())).unwrap();
        std::fs::read(path).unwrap()
    });
    assert!(files[0] == files[1] && files[1] == files[2]);
}
