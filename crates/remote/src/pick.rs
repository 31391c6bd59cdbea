//! The one model among the files of a folder, whatever kind of folder it is.

use crate::error::Error;

/// As [`gguf::pick_model`], of the GGUF files among `names`.
///
/// # Errors
/// [`Error::Choice`] if there is none or more than one.
pub(crate) fn pick(place: String, mut names: Vec<String>, part: &str) -> Result<String, Error> {
    names.retain(|name| gguf::is_gguf(name));
    gguf::pick_model(place, names, part).map_err(Error::Choice)
}
