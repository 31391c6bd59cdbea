//! Byte order of models whose elements are computed with.

use gguf::{ByteOrder, Error};
use gguf_store::Model;

/// Refuses models whose elements are not stored as this crate reads them.
///
/// # Errors
/// If the model is big-endian.
pub fn require_little_endian(model: &Model) -> Result<(), Error> {
    match model.order() {
        ByteOrder::Little => Ok(()),
        ByteOrder::Big => Err(Error::request(
            "big-endian",
            "the model is big-endian",
            "convert it with `gguf convert-endian` first",
        )),
    }
}
