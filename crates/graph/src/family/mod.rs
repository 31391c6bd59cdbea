//! The graphs of architectures, one file per family.

mod bert;
mod llama;
mod mamba;
mod rwkv;
mod t5;
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
    ("rwkv6", rwkv::rwkv6),
    ("rwkv7", rwkv::rwkv7),
    ("whisper", whisper::whisper),
    ("bert", bert::bert),
    ("nomic-bert", bert::nomic),
    ("nomic-bert-moe", bert::plain_rotated),
    ("jina-bert-v2", bert::jina2),
    ("jina-bert-v3", bert::plain_rotated),
    ("t5", t5::t5),
    ("t5encoder", t5::encoder),
];

/// The family of an architecture.
pub(crate) fn of(architecture: &str) -> Option<Family> {
    FAMILIES.iter().find(|(name, _)| *name == architecture).map(|(_, family)| *family)
}

/// The architectures that a graph can be built for.
pub fn architectures() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(name, _)| *name)
}
