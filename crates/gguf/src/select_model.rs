//! Selection of the only model among file names of a directory, repository or bucket.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Error;
use crate::model_name::{NameShard, is_companion};

/// Error: no model matches, or more than one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectModelError {
    /// Directory, repository or bucket.
    pub place: String,
    /// First file of each candidate model.
    pub names: Vec<String>,
    /// Requested part that no name contains.
    pub missing: Option<String>,
}

impl fmt::Display for SelectModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Maximum number of listed names: directories can have thousands.
        const SHOWN: usize = 30;
        let Self { place, names, missing } = self;
        if names.is_empty() {
            return write!(f, "no GGUF file at {place}");
        }
        // File names are untrusted: replace control characters, which a terminal would interpret.
        let plain = |name: &String| name.replace(char::is_control, "\u{fffd}");
        let shown: Vec<_> = names.iter().take(SHOWN).map(plain).collect();
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = shown.join(", ");
        match missing {
            Some(part) => {
                let part = part.replace(char::is_control, "\u{fffd}");
                write!(f, "no model at {place} has `{part}` in its name; there are {shown}{more}")
            }
            None => write!(f, "{} models at {place}: {shown}{more}; name one of them", names.len()),
        }
    }
}

impl std::error::Error for SelectModelError {}

/// Converts to an error of the caller.
impl From<SelectModelError> for Error {
    fn from(error: SelectModelError) -> Self {
        let code = if error.names.is_empty() { "model-missing" } else { "model-ambiguous" };
        Self::request(code, error.to_string(), "")
    }
}

/// Returns the only model among these file names or paths; the first shard of a split model.
///
/// `part` must occur in the name, ignoring case, such as `Q4_K_M`; a match as a whole word takes
/// precedence. Sidecar files count only if there is nothing else.
///
/// # Errors
/// If no model or more than one matches; `place` is for the message.
pub fn select_model(
    place: String,
    names: impl IntoIterator<Item = String>,
    part: &str,
) -> Result<String, SelectModelError> {
    let mut models = BTreeMap::new();
    for name in names {
        let model = match NameShard::strip(&name) {
            Some((prefix, shard)) => (prefix.to_owned(), shard.count),
            None => (name.clone(), 0),
        };
        let first = models.entry(model).or_insert_with(|| name.clone());
        if name < *first {
            *first = name;
        }
    }
    let models: Vec<String> = models.into_values().collect();
    let requested = part;
    let part = part.to_lowercase();
    let matches = |test: fn(&str, &str) -> bool| {
        let matching =
            models.iter().filter(|name| part.is_empty() || test(&name.to_lowercase(), &part));
        matching.cloned().collect::<Vec<_>>()
    };
    let mut matching = matches(has_word);
    if matching.is_empty() {
        matching = matches(|name, part| name.contains(part));
    }
    if matching.iter().any(|name| !is_companion(name)) {
        matching.retain(|name| !is_companion(name));
    }
    match <[String; 1]>::try_from(matching) {
        Ok([only]) => Ok(only),
        // If no name contains `part`, list all models.
        Err(matching) if matching.is_empty() => {
            let missing = Some(requested.to_owned()).filter(|part| !part.is_empty());
            Err(SelectModelError { place, names: models, missing })
        }
        Err(names) => Err(SelectModelError { place, names, missing: None }),
    }
}

/// Returns true if a name has the extension of GGUF files.
pub fn is_gguf(name: &str) -> bool {
    name.to_lowercase().ends_with(".gguf")
}

/// Returns true if `word` occurs without an adjacent letter, digit or underscore: `f16` is not a
/// word of `bf16`.
fn has_word(name: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    name.match_indices(word)
        .any(|(at, _)| !name[..at].ends_with(joins) && !name[at + word.len()..].starts_with(joins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_type_is_named() {
        let names = ["a-Q4_K_M.gguf", "a-Q8_0.gguf"].map(str::to_owned);
        let message = select_model("hf:o/r".to_owned(), names, "Q5_0").unwrap_err().to_string();
        assert_eq!(
            message,
            "no model at hf:o/r has `Q5_0` in its name; there are a-Q4_K_M.gguf, a-Q8_0.gguf"
        );
    }

    fn select(names: &[&str], part: &str) -> String {
        let names = names.iter().map(|name| (*name).to_owned());
        select_model("here".into(), names, part).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn selects_the_only_model() {
        assert_eq!(select(&["a.GGUF"], ""), "a.GGUF");
        assert_eq!(select(&[], ""), "no GGUF file at here");
        let two = ["m-Q4_K_M.gguf", "m-Q8_0.gguf"];
        assert_eq!(select(&two, "q8_0"), "m-Q8_0.gguf");
        let ambiguous = "2 models at here: m-Q4_K_M.gguf, m-Q8_0.gguf; name one of them";
        assert_eq!(select(&two, ""), ambiguous);
        let floats = ["m-BF16.gguf", "m-F16.gguf", "UD/m-Q4_K_XL.gguf"];
        assert_eq!(select(&floats, "f16"), "m-F16.gguf");
        assert_eq!(select(&floats, "q4_k"), "UD/m-Q4_K_XL.gguf");
        assert!(select(&["m-Q4_K_M.gguf", "m-Q4_K_S.gguf"], "Q4_K").starts_with("2 models"));
        let shown = select(&["a\u{1b}[2J.gguf", "b.gguf"], "");
        assert!(shown.contains("a\u{fffd}[2J.gguf"), "{shown}");
    }

    #[test]
    fn shards_are_one_model() {
        let shards = ["q/m-00002-of-00002.gguf", "q/m-00001-of-00002.gguf"];
        assert_eq!(select(&shards, ""), shards[1]);
        assert_eq!(select(&[shards[0], shards[1], "q/m-Q8_0.gguf"], "q8_0"), "q/m-Q8_0.gguf");
        let others = select(&[shards[0], shards[1], "n-00001-of-00002.gguf"], "");
        assert!(others.starts_with("2 models at here: n-00001"), "{others}");
    }

    #[test]
    fn sidecars_do_not_count() {
        let model = "m-Q4_K_M.gguf";
        for other in [
            "mmproj-m-F16.gguf",
            "mmproj.gguf",
            "m.mmproj-Q4_K_M.gguf",
            "sub/mtp-m-Q4_K_M.gguf",
            "imatrix.gguf",
            "m-imatrix.gguf",
            "m_imatrix_unsloth.gguf",
            "m-7B-v1.0-F16-LoRA.gguf",
            "m-7B-v1.0-vocab.gguf",
            "mmproj-m-00001-of-00002.gguf",
        ] {
            assert_eq!(select(&[other, model], ""), model, "{other}");
            assert_eq!(select(&[model, other], "Q4_K_M"), model, "{other}");
            assert_eq!(select(&[other], ""), other);
        }
        assert_eq!(select(&["mmproj-F16.gguf", model], "mmproj"), "mmproj-F16.gguf");
        for model in ["smtp-7B.gguf", "m-lora-merged.gguf", "vocab-7B-v1.0.gguf"] {
            assert!(select(&[model, "z.gguf"], "").starts_with("2 models"), "{model}");
        }
        assert!(select(&["mmproj-F16.gguf", "mmproj-F32.gguf"], "").starts_with("2 models"));
    }
}
