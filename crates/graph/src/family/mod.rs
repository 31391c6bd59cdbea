//! The graphs of architectures, one file per family.

mod bert;
mod llama;
mod mamba;
mod rwkv;
mod whisper;

use gguf::Finding;

use crate::build::Builder;

/// What puts the operations of an architecture together.
type Family = fn(&mut Builder<'_>) -> Result<(), Finding>;

/// All architectures that a graph can be built for, and how.
const FAMILIES: &[(&str, Family)] = &[
    ("llama", llama::llama),
    ("mamba", mamba::mamba),
    ("mamba2", mamba::mamba2),
    ("rwkv", rwkv::rwkv4),
    ("whisper", whisper::whisper),
    ("bert", bert::bert),
];

/// The family of an architecture.
pub(crate) fn of(architecture: &str) -> Option<Family> {
    FAMILIES.iter().find(|(name, _)| *name == architecture).map(|(_, family)| *family)
}

/// The architectures that a graph can be built for.
pub fn architectures() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(name, _)| *name)
}
