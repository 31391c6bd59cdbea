//! Digest that identifies the base model of an adapter.

use sha2::{Digest, Sha256};

/// Key of the base model's digest: see [`base_digest`].
pub const BASE_DIGEST: &str = "gguf_kit.adapter.base_digest";

/// Returns a digest of the names and shapes of the matrices in a model's layers, as 64 hexadecimal digits. It does not
/// depend on tensor types and values.
///
/// It is the SHA-256 of a line `NAME SHAPE` per matrix, sorted by name, with shapes such as `[4096, 14336]`.
pub fn base_digest<'t>(tensors: impl Iterator<Item = (&'t str, &'t [u64])>) -> String {
    let mut lines: Vec<_> = tensors
        .filter(|(name, shape)| name.starts_with("blk.") && shape.len() > 1)
        .map(|(name, shape)| format!("{name} {shape:?}\n"))
        .collect();
    lines.sort_unstable();
    let digest = Sha256::digest(lines.concat());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
