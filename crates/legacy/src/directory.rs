//! The tensor records, which follow the vocabulary up to the end of the file.
//!
//! ```text
//! n_dims u32 | name length u32 | type u32 | n_dims x u32, innermost first | name | padding | data
//! ```

use super::blocks::{QuantizationVersion, StorageType, SuperBlock, storage_type};
use super::container::Container;
use super::cursor::{Cursor, ReadError};

/// A stored tensor.
#[derive(Clone)]
pub(super) struct Record {
    pub name: String,
    /// Extents, innermost dimension first.
    pub dims: Vec<u64>,
    /// The stored type number, which `storage` resolves.
    pub type_id: u32,
    pub storage: StorageType,
    /// Offset of the data.
    pub offset: u64,
    /// Length of the data in bytes.
    pub len: u64,
}

/// Maximum length of a tensor name.
const MAX_NAME_BYTES: u64 = 256;

/// Reads records up to the end of the file.
pub(super) fn read(
    cursor: &mut Cursor,
    container: Container,
    version: QuantizationVersion,
    super_block: SuperBlock,
) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    while cursor.remaining() > 0 {
        records.push(record(cursor, container, version, super_block)?);
    }
    if records.is_empty() {
        return Cursor::malformed(cursor.at(), "file ends before the first tensor");
    }
    Ok(records)
}

fn record(
    cursor: &mut Cursor,
    container: Container,
    version: QuantizationVersion,
    super_block: SuperBlock,
) -> Result<Record, ReadError> {
    const WHAT: &str = "tensor record";
    let at = cursor.at();
    let n_dims = cursor.u32(WHAT)?;
    let name_len = cursor.u32(WHAT)?.into();
    let type_id = cursor.u32(WHAT)?;
    if !(1..=4).contains(&n_dims) {
        return Cursor::malformed(at, format!("tensor has {n_dims} dimensions"));
    }
    if !(1..=MAX_NAME_BYTES).contains(&name_len) {
        return Cursor::malformed(at + 4, format!("tensor name has {name_len} bytes"));
    }
    let dims =
        (0..n_dims).map(|_| cursor.u32(WHAT).map(u64::from)).collect::<Result<Vec<_>, _>>()?;
    let name = cursor.bytes(name_len, WHAT)?;
    let Ok(name) = std::str::from_utf8(name).map(str::to_owned) else {
        return Cursor::malformed(at + 12, "tensor name is not valid UTF-8");
    };
    let Some(storage) = storage_type(type_id, version, super_block) else {
        let what =
            format!("tensor `{name}` has type {type_id}, which this version does not define");
        return Cursor::malformed(at + 8, what);
    };
    let len = storage.byte_len(&dims).filter(|&len| len > 0);
    let Some(len) = len else {
        let what = format!("tensor `{name}` has shape {dims:?}, invalid for {}", storage.name());
        return Cursor::malformed(at + 12, what);
    };
    let offset = container.align(cursor.at());
    cursor.skip(offset - cursor.at(), &format!("padding before tensor `{name}`"))?;
    cursor.skip(len, &format!("data of tensor `{name}`"))?;
    Ok(Record { name, dims, type_id, storage, offset, len })
}
