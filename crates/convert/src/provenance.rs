//! What a file was made from, written into it: keys that nobody else uses.

use std::path::Path;

use gguf::{Error, Metadata};
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use sha2::{Digest, Sha256};

/// What made the file, and its version.
pub const TOOL: &str = "gguf_kit.provenance.tool";

/// What it was made from, as the user named it, without its directory.
pub const SOURCE: &str = "gguf_kit.provenance.source";

/// A digest of what it was made from: see [`digest`].
pub const DIGEST: &str = "gguf_kit.provenance.source_digest";

/// What was asked for.
pub const SETTINGS: &str = "gguf_kit.provenance.settings";

/// Writes the keys: `settings` is what was asked for, in words that make the same file again.
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

/// A digest of a checkpoint that does not cost reading its weights, 64 hexadecimal digits.
///
/// It is the SHA-256 of `config.json` (or `params.json`), followed by a line `NAME TYPE SHAPE FILE OFFSET` per tensor in
/// order of name. The weights themselves are compared by [`verify`](gguf_quantize::verify).
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
