//! The GGUF container: read, check and write model files.

mod array;
mod encoding;
mod error;
mod finding;
mod metadata;
mod name;
mod size_label;
mod tensor_type;
mod value;

pub use array::{Array, Elements};
pub use encoding::{ByteOrder, Encoding};
pub use error::Error;
pub use finding::{Collector, Finding, Severity, Sink, Strict};
pub use metadata::Metadata;
pub use name::{ModelName, NameError, NameKind, NameShard, Sidecar};
pub use size_label::ParameterCount;
pub use tensor_type::{Status, TensorType, TypeTraits, UnknownTypeName};
pub use value::{Value, ValueType};
