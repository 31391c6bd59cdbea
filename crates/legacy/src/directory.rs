//! The tensors of a file, up to its end.
//!
//! ```text
//! n_dims u32 | name length u32 | type u32 | n_dims x u32, fastest first | name | padding | data
//! ```

use super::blocks::{Generation, StorageType, SuperBlock, form};
use super::container::Container;
use super::cursor::{Cursor, Fault};

/// A tensor as it is stored.
#[derive(Clone)]
pub(super) struct Record {
    pub name: String,
    /// Elements per dimension, fastest first.
    pub dims: Vec<u64>,
    /// The number of its type, whose meaning is `form`.
    pub type_id: u32,
    pub form: StorageType,
    /// First byte of its data.
    pub offset: u64,
    /// Bytes of its data.
    pub len: u64,
}

/// Longer names are not those of tensors.
const LONGEST_NAME: u64 = 256;

/// Reads all records; none is left half read at the end of the file.
pub(super) fn read(
    cursor: &mut Cursor,
    container: Container,
    generation: Generation,
    super_block: SuperBlock,
) -> Result<Vec<Record>, Fault> {
    let mut records = Vec::new();
    while cursor.remaining() > 0 {
        records.push(record(cursor, container, generation, super_block)?);
    }
    if records.is_empty() {
        return Cursor::fault(cursor.at(), "the file ends before its first tensor");
    }
    Ok(records)
}

fn record(
    cursor: &mut Cursor,
    container: Container,
    generation: Generation,
    super_block: SuperBlock,
) -> Result<Record, Fault> {
    const WHAT: &str = "the head of a tensor";
    let at = cursor.at();
    let n_dims = cursor.u32(WHAT)?;
    let name_len = cursor.u32(WHAT)?.into();
    let type_id = cursor.u32(WHAT)?;
    if !(1..=4).contains(&n_dims) {
        return Cursor::fault(at, format!("a tensor with {n_dims} dimensions"));
    }
    if !(1..=LONGEST_NAME).contains(&name_len) {
        return Cursor::fault(at + 4, format!("a tensor's name of {name_len} bytes"));
    }
    let dims =
        (0..n_dims).map(|_| cursor.u32(WHAT).map(u64::from)).collect::<Result<Vec<_>, _>>()?;
    let name = cursor.bytes(name_len, WHAT)?;
    let Ok(name) = std::str::from_utf8(name).map(str::to_owned) else {
        return Cursor::fault(at + 12, "a tensor's name that is not text");
    };
    let Some(form) = form(type_id, generation, super_block) else {
        let what = format!("tensor `{name}` has type {type_id}, which no file of this version has");
        return Cursor::fault(at + 8, what);
    };
    let len = form.byte_len(&dims).filter(|&len| len > 0);
    let Some(len) = len else {
        let what = format!("tensor `{name}` has the shape {dims:?}, which {} cannot", form.name());
        return Cursor::fault(at + 12, what);
    };
    let offset = container.align(cursor.at());
    cursor.skip(offset - cursor.at(), &format!("the padding before tensor `{name}`"))?;
    cursor.skip(len, &format!("the data of tensor `{name}`"))?;
    Ok(Record { name, dims, type_id, form, offset, len })
}
