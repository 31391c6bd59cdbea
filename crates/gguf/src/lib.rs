//! The GGUF container: read, check and write model files.

mod tensor_type;

pub use tensor_type::{Status, TensorType, TypeTraits, UnknownTypeName};
