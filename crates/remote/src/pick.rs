//! Selection of the only model among file names.

use crate::error::Error;

/// Selects the only model among the GGUF files in `names`, as [`gguf::pick_model`] does.
///
/// # Errors
/// [`Error::Choice`] if there is none or more than one.
pub(crate) fn pick(place: String, mut names: Vec<String>, part: &str) -> Result<String, Error> {
    names.retain(|name| gguf::is_gguf(name));
    gguf::pick_model(place, names, part).map_err(Error::Choice)
}
