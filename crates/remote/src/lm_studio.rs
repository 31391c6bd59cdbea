//! Models in the directories of LM Studio: `models/PUBLISHER/REPOSITORY/FILE.gguf`.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum depth of a file below the directory.
const DEPTH: usize = 4;

/// Returns the GGUF files in the directories of LM Studio: `~/.lmstudio/models`, and that of earlier versions,
/// `~/.cache/lm-studio/models`.
pub fn lm_studio_files() -> Vec<PathBuf> {
    let Some(home) = std::env::home_dir() else { return Vec::new() };
    let mut found = Vec::new();
    for directory in [".lmstudio/models", ".cache/lm-studio/models"] {
        add(&home.join(directory), DEPTH, &mut found);
    }
    found.sort();
    found
}

fn add(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && depth > 1 {
            add(&path, depth - 1, found);
        } else if path.is_file() && path.to_str().is_some_and(gguf::is_gguf) {
            found.push(path);
        }
    }
}
