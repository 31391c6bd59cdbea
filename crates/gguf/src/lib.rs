//! GGUF format: reads, checks and writes the header of model files.
//!
//! Input is bytes, output is headers and findings. This crate opens no files: the crate
//! `gguf-store` does.
//!
//! Three levels, each usable alone:
//!
//! - [`check`] reads any bytes and lists all faults as [`Finding`]s;
//! - [`Gguf`] is a valid file: typed [`Metadata`], the tensor directory, and the bytes of each
//!   tensor, all borrowed from the file;
//! - [`RawHeader`] is a header to build or edit; [`Header::new`] checks it by the same rules and
//!   [`write_header`] encodes it.
//!
//! The crate `gguf-models` has the keys and tensors of each architecture; the crate `gguf-check`
//! checks files against them.
//!
//! ```
//! use gguf::{Gguf, Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
//! # fn main() -> Result<(), gguf::Error> {
//! let mut raw = RawHeader::default();
//! raw.metadata.set("general.architecture", "llama");
//! raw.tensors.push(TensorInfo {
//!     name: "output_norm.weight".into(),
//!     shape: Shape::new(&[4]).unwrap(),
//!     tensor_type: TensorType::F32,
//!     offset: 0,
//!     opaque_len: None,
//! });
//! raw.lay_out()?;
//! let mut file = write_header(&Header::new(raw)?)?;
//! file.extend_from_slice(&[0; 16]);
//!
//! let model = Gguf::read(&file.into())?;
//! assert_eq!(model.data(&model.tensors()[0]), Some(&[0; 16][..]));
//! # Ok(())
//! # }
//! ```

mod alignment;

mod encoding;
pub mod endian;
mod error;
mod file_type;
mod finding;

mod foreign_format;
mod header;
mod header_fields;
mod header_step;
mod metadata;
mod model_name;
mod raw_header;
mod read;
mod rules;
mod select_model;
pub mod shard_keys;
mod size_label;
pub mod suggest;
mod tensor;
mod tensor_type;
pub mod units;
mod value;
mod write;

pub use alignment::Alignment;
pub use bytes::Bytes;
pub use encoding::ByteOrder;
pub use error::{Error, Fault};
pub use file_type::{FILE_TYPES, FileType, file_type, file_type_named};
pub use finding::{Collector, Finding, Severity, Sink};
pub use header::Header;
pub use header_fields::{HeaderField, HeaderFieldKind};
pub use header_step::{FIRST_READ, HeaderStep, header_step};
pub use metadata::Metadata;
pub use model_name::{ModelName, NameError, NameKind, NameShard, Sidecar};
pub use raw_header::{EntrySpan, RawHeader, Spans};
pub use read::{
    Gguf, HeaderExtent, Limits, MAGIC, check, check_header, check_header_with,
    check_raw_header_with, header_extent,
};
pub use rules::shards::{check_shards, require_shards};
pub use rules::{Extent, FileKind, Rules, Subject};
pub use select_model::{SelectModelError, is_gguf, select_model};
pub use size_label::ParameterCount;
pub use tensor::{MAX_DIMS, Shape, TensorInfo};
pub use tensor_type::{QUANTIZATION_VERSION, Status, TensorType, TypeTraits, UnknownTypeName};
pub use value::array::{Array, Elements};
pub use value::{Value, ValueType};
pub use write::write_header;
