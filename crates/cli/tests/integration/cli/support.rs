//! Helpers for tests of the binary.

use std::process::{Command, Output};

use serde_json::Value;

/// Small trained model.
pub const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

pub fn gguf(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gguf")).args(args).output().unwrap()
}

#[track_caller]
pub fn succeeds(args: &[&str]) -> String {
    let output = gguf(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts that a command fails with this exit code, and that its message contains all parts.
#[track_caller]
pub fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let output = gguf(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "`{part}` is missing in: {stderr}");
    }
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn f16(&self) -> String {
        let path = self.path("f16.gguf");
        succeeds(&["convert", MODEL, "-o", &path, "--outtype", "f16", "--force"]);
        path
    }
}

/// Writes a model with the metadata and tensor directory of [`Dir::f16`], and other weights.
pub fn other_weights(dir: &Dir) -> String {
    let f16 = dir.f16();
    let start = gguf_store::Model::open(f16.as_ref()).unwrap().parts()[0].data_start as usize;
    let mut bytes = std::fs::read(&f16).unwrap();
    // Flips the sign bit, in F16 and in F32.
    bytes[start..].iter_mut().skip(3).step_by(4).for_each(|byte| *byte ^= 0x80);
    let path = dir.path("other-f16.gguf");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Writes a Hugging Face adapter of rank 4 for a matrix of [`MODEL`].
pub fn adapter(dir: &Dir) -> String {
    let adapter = dir.path("adapter");
    std::fs::create_dir(&adapter).unwrap();
    let config = serde_json::json!({ "peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"] });
    std::fs::write(format!("{adapter}/adapter_config.json"), config.to_string()).unwrap();
    let name =
        |side| format!("base_model.model.model.layers.0.self_attn.q_proj.lora_{side}.weight");
    let entry = |shape: [u32; 2], from: u32| serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [from, from + 4096] });
    let header =
        serde_json::json!({ name("A"): entry([4, 256], 0), name("B"): entry([256, 4], 4096) });
    let header = header.to_string();
    let data: Vec<u8> = (0..2048).flat_map(|i| (i as f32 / 2048.0).to_le_bytes()).collect();
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    std::fs::write(format!("{adapter}/adapter_model.safetensors"), file).unwrap();
    adapter
}
