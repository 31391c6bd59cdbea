//! Provenance of an output file: its own keys with tool, source and settings.

use std::path::Path;

use gguf::{Error, Metadata};
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use sha2::{Digest, Sha256};

/// Key of the tool and its version.
pub const TOOL: &str = "gguf_kit.provenance.tool";

/// Key of the source directory's name.
pub const SOURCE: &str = "gguf_kit.provenance.source";

/// Key of the source's digest: see [`digest`].
pub const DIGEST: &str = "gguf_kit.provenance.source_digest";

/// Key of the settings.
pub const SETTINGS: &str = "gguf_kit.provenance.settings";

/// Writes the keys. `settings` are the command-line flags that reproduce the file.
///
/// # Errors
/// As [`digest`].
pub fn write(
    metadata: &mut Metadata,
    dir: &Path,
    checkpoint: &Checkpoint,
    settings: &str,
) -> Result<(), Error> {
    let name = dir.canonicalize().map_err(|source| Error::read(dir, source))?;
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    metadata.set(TOOL, concat!("gguf-kit ", env!("CARGO_PKG_VERSION")));
    metadata.set(SOURCE, name);
    metadata.set(DIGEST, digest(dir, checkpoint)?);
    metadata.set(SETTINGS, settings.to_owned());
    Ok(())
}

/// Returns a digest of a checkpoint without reading its weights, as 64 hexadecimal digits.
///
/// It is the SHA-256 of `config.json` (or `params.json`), followed by a line `NAME TYPE SHAPE FILE OFFSET` per
/// tensor, sorted by name. [`verify`](gguf_quantize::verify) compares the weights.
///
/// # Errors
/// If `config.json` cannot be read.
pub fn digest(dir: &Path, checkpoint: &Checkpoint) -> Result<String, Error> {
    let mut hasher = Sha256::new();
    // Some checkpoints have no configuration.
    if let Some(path) = Config::file_in(dir) {
        hasher.update(std::fs::read(&path).map_err(|source| Error::read(&path, source))?);
    }
    let mut lines: Vec<_> = checkpoint
        .entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {:?} {} {}\n",
                entry.name, entry.tensor_type, entry.shape, entry.file, entry.offset
            )
        })
        .collect();
    lines.sort_unstable();
    lines.iter().for_each(|line| hasher.update(line));
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
