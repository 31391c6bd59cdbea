//! Properties of the legacy GGML reader for any bytes.

use gguf_legacy::{LegacyModel, LegacyOptions};

/// Opening and planning never panic, and do not ask for more memory than the file is worth. Returns
/// whether it was recognised.
pub fn open(bytes: &[u8]) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ggml-model.bin");
    std::fs::write(&path, bytes).unwrap();
    let options = LegacyOptions::default();
    match LegacyModel::open(&path, &options) {
        Ok(legacy) => {
            let _ = legacy.plan(&options);
        }
        Err(error) => drop(error.to_string()),
    }
    gguf_legacy::is_legacy(&path).unwrap_or(false)
}
