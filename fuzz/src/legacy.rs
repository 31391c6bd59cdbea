//! Fuzz property of the legacy GGML reader.

use gguf_legacy::{LegacyModel, LegacyOptions};

/// Opens and plans a file without a panic, and without allocating more memory than the file
/// justifies. Returns whether the format was recognized.
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
