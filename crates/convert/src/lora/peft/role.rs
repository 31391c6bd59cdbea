//! Names of the tensors of a PEFT adapter.

/// Role of an adapter's tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role<'n> {
    /// A matrix of the pair of a module.
    Matrix(Part<'n>),
    /// Copy of a tensor of the base model, with the name of that tensor's module.
    BaseCopy(&'n str),
    /// Tensor of the base model that is trained as a whole: the name of its module and of the tensor in it.
    Whole(&'n str, &'n str),
    /// Part of another kind of adapter.
    Other,
}

/// A matrix of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part<'n> {
    /// Name of the module.
    pub module: &'n str,
    /// Name of the adapter; empty in files that PEFT saves.
    pub adapter: &'n str,
    /// Whether the module is an embedding.
    pub is_embedding: bool,
    /// Whether it is the second matrix of the pair.
    pub is_second: bool,
}

/// Prefix of all modules of the base model.
const PREFIX: &str = "base_model.model.";

/// Infixes before the name of the adapter, whether of an embedding, and whether of the second matrix.
const MATRICES: [(&str, bool, bool); 4] = [
    (".lora_A", false, false),
    (".lora_B", false, true),
    (".lora_embedding_A", true, false),
    (".lora_embedding_B", true, true),
];

/// Returns the role of a tensor.
pub(super) fn role(mut name: &str) -> Role<'_> {
    while let Some(rest) = name.strip_prefix(PREFIX) {
        name = rest;
    }
    for (infix, is_embedding, is_second) in MATRICES {
        let Some((module, rest)) = name.rsplit_once(infix) else { continue };
        // Embeddings are parameters, other matrices are modules with a weight.
        let rest = if is_embedding { Some(rest) } else { rest.strip_suffix(".weight") };
        return match rest.map(|rest| (rest, rest.strip_prefix('.'))) {
            Some(("", _)) => Role::Matrix(Part { module, adapter: "", is_embedding, is_second }),
            Some((_, Some(adapter))) if !adapter.contains('.') => {
                Role::Matrix(Part { module, adapter, is_embedding, is_second })
            }
            _ => Role::Other,
        };
    }
    if name.contains(".lora_") {
        return Role::Other;
    }
    for infix in [".base_layer.", ".original_module."] {
        if let Some((module, _)) = name.rsplit_once(infix) {
            return Role::BaseCopy(module);
        }
    }
    let (module, tensor) = name.rsplit_once('.').unwrap_or(("", name));
    let module = module.split_once(".modules_to_save").map_or(module, |(module, _)| module);
    Role::Whole(module, tensor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_determine_the_role() {
        let module = "model.layers.0.mlp.up_proj";
        let matrix = |adapter, is_embedding, is_second| {
            Role::Matrix(Part { module, adapter, is_embedding, is_second })
        };
        let cases = [
            ("base_model.model.M.lora_A.weight", matrix("", false, false)),
            ("base_model.model.base_model.model.M.lora_B.weight", matrix("", false, true)),
            ("M.lora_A.default.weight", matrix("default", false, false)),
            ("M.lora_B.sft.weight", matrix("sft", false, true)),
            ("M.lora_embedding_A", matrix("", true, false)),
            ("base_model.model.M.lora_embedding_B.default", matrix("default", true, true)),
            ("base_model.model.M.base_layer.weight", Role::BaseCopy(module)),
            ("base_model.model.M.original_module.weight", Role::BaseCopy(module)),
            ("base_model.model.M.modules_to_save.default.weight", Role::Whole(module, "weight")),
            ("base_model.model.M.weight", Role::Whole(module, "weight")),
            ("M.lora_magnitude_vector", Role::Other),
            ("M.lora_B.bias", Role::Other),
            ("M.lora_B.default.bias", Role::Other),
        ];
        for (name, expected) in cases {
            assert_eq!(role(&name.replace('M', module)), expected, "{name}");
        }
    }
}
