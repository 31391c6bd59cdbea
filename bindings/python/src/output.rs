//! Output files.

use gguf_store::{Existing, Overwrite};

/// Returns the overwrite policy of `force`.
pub fn overwrite(force: bool) -> Overwrite {
    gguf_kit::overwrite(if force { Existing::Replace } else { Existing::Refuse })
}
