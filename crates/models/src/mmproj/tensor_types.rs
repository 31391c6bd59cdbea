//! Types of encoder tensors.

use gguf::{Shape, TensorType};

/// Type of a tensor instead of the matrix type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeOverride {
    /// F32.
    F32,
    /// F16.
    F16,
    /// F16 in F16 files, F32 in all others.
    Float,
}

impl TypeOverride {
    fn among(self, matrices: TensorType) -> TensorType {
        match self {
            Self::F32 => TensorType::F32,
            Self::Float if matrices != TensorType::F16 => TensorType::F32,
            Self::F16 | Self::Float => TensorType::F16,
        }
    }
}

/// Returns the type of a tensor where matrices have the type `matrices`. `kept` are the exceptions of an encoder: a prefix
/// of names, a part of names (starting with a dot), or both with a star between them.
pub fn float_type(
    name: &str,
    shape: &Shape,
    matrices: TensorType,
    kept: &[(&str, TypeOverride)],
) -> TensorType {
    // Some runtimes support no BF16 or quantized convolutions.
    const CONVOLUTIONS: &[(&str, TypeOverride)] = &[
        (".patch_embd.weight", TypeOverride::Float),
        (".patch_merger.weight", TypeOverride::Float),
    ];
    if shape.len() <= 1 || name.ends_with("_norm.weight") {
        return TensorType::F32;
    }
    let of_name = |(part, _): &&(&str, TypeOverride)| match part.split_once('*') {
        Some((start, part)) => name.strip_prefix(start).is_some_and(|name| name.contains(part)),
        None if part.starts_with('.') => name.contains(part),
        None => name.starts_with(part),
    };
    let mut kept = kept.iter().chain(CONVOLUTIONS).filter(|_| name.contains(".weight"));
    if let Some((_, kept)) = kept.find(of_name) {
        return kept.among(matrices);
    }
    let is_position = matches!(name, "v.position_embd.weight" | "a.position_embd.weight");
    match is_position || !name.ends_with(".weight") {
        true => TensorType::F32,
        // Rows may not divide into blocks.
        false if matrices.byte_len(shape).is_none() => TensorType::F16,
        false => matrices,
    }
}
