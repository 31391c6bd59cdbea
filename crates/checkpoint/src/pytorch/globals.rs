//! Allowlist of the globals that a pickle of tensors may name.

use crate::dtype::Dtype;

/// A class or function that a pickle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// Ordered dict; all dicts here keep their order.
    OrderedDict,
    /// `_rebuild_tensor(storage, offset, size, stride)`, and its second version with further
    /// arguments.
    RebuildTensor,
    /// As [`Self::RebuildTensor`], with the element type as the seventh argument.
    RebuildTensorV3,
    /// `_rebuild_parameter(tensor, ...)`.
    RebuildParameter,
    /// `_rebuild_from_type_v2(function, type, arguments, state)`.
    RebuildFromType,
    /// Storage class, by element type.
    Storage(Dtype),
    /// `torch.float32` and other dtypes.
    Dtype(Dtype),
    /// A tuple.
    Size,
    /// Device of a tensor.
    Device,
    /// Tensor and parameter classes.
    TensorType,
}

/// Looks up a global; `None` for everything that is not needed to describe tensors.
pub(super) fn find(module: &str, name: &str) -> Option<Global> {
    Some(match (module, name) {
        ("collections", "OrderedDict") => Global::OrderedDict,
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Global::RebuildTensor,
        ("torch._utils", "_rebuild_tensor_v3") => Global::RebuildTensorV3,
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
            Global::RebuildParameter
        }
        ("torch._tensor", "_rebuild_from_type_v2") => Global::RebuildFromType,
        ("torch", "Size") => Global::Size,
        ("torch", "device") => Global::Device,
        ("torch", "Tensor") | ("torch.nn.parameter", "Parameter") => Global::TensorType,
        // Its elements are bytes.
        ("torch" | "torch.storage", "UntypedStorage") => Global::Storage(Dtype::U8),
        ("torch" | "torch.cuda", name) => match name.strip_suffix("Storage") {
            Some(kind) => Global::Storage(storage(kind)?),
            None if module == "torch" => Global::Dtype(dtype(name)?),
            None => return None,
        },
        _ => return None,
    })
}

fn storage(kind: &str) -> Option<Dtype> {
    Some(match kind {
        "Double" => Dtype::F64,
        "Float" => Dtype::F32,
        "Half" => Dtype::F16,
        "BFloat16" => Dtype::BF16,
        "Long" => Dtype::I64,
        "Int" => Dtype::I32,
        "Short" => Dtype::I16,
        "Char" => Dtype::I8,
        "Byte" => Dtype::U8,
        "Bool" => Dtype::Bool,
        _ => return None,
    })
}

fn dtype(name: &str) -> Option<Dtype> {
    Some(match name {
        "float64" | "double" => Dtype::F64,
        "float32" | "float" => Dtype::F32,
        "float16" | "half" => Dtype::F16,
        "bfloat16" => Dtype::BF16,
        "float8_e4m3fn" => Dtype::F8E4M3,
        "float8_e5m2" => Dtype::F8E5M2,
        "float8_e8m0fnu" => Dtype::F8E8M0,
        "int64" | "long" => Dtype::I64,
        "int32" | "int" => Dtype::I32,
        "int16" | "short" => Dtype::I16,
        "int8" => Dtype::I8,
        "uint64" => Dtype::U64,
        "uint32" => Dtype::U32,
        "uint16" => Dtype::U16,
        "uint8" => Dtype::U8,
        "bool" => Dtype::Bool,
        _ => return None,
    })
}
