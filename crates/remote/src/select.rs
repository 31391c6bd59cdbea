//! Selection of the only model among file names.

use crate::error::Error;

/// Selects the only model among the GGUF files in `names`, as [`gguf::select_model`] does.
///
/// # Errors
/// [`Error::SelectModel`] if there is none or more than one.
pub(crate) fn select(place: String, mut names: Vec<String>, part: &str) -> Result<String, Error> {
    names.retain(|name| gguf::is_gguf(name));
    gguf::select_model(place, names, part).map_err(Error::SelectModel)
}
