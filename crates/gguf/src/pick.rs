//! The one model among the files of a folder, a repository or a bucket, by their names alone.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Error;
use crate::name::{NameShard, is_companion};

/// There is no model in a place, or more than one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where was looked.
    pub place: String,
    /// One file of each model there.
    pub names: Vec<String>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// At most so many names: folders can hold thousands.
        const SHOWN: usize = 30;
        let Self { place, names } = self;
        if names.is_empty() {
            return write!(f, "no GGUF file at {place}");
        }
        // Others chose the names: nothing that a terminal obeys.
        let plain = |name: &String| name.replace(char::is_control, "\u{fffd}");
        let shown: Vec<_> = names.iter().take(SHOWN).map(plain).collect();
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        write!(f, "{} models at {place}: {}{more}; name one of them", names.len(), shown.join(", "))
    }
}

impl std::error::Error for Choice {}

/// A fault of the caller.
impl From<Choice> for Error {
    fn from(choice: Choice) -> Self {
        let code = if choice.names.is_empty() { "model-missing" } else { "model-ambiguous" };
        Self::request(code, choice.to_string(), "")
    }
}

/// The only model among the files of these names, or paths: of one in shards, the first of them.
/// `part` is what the name has in it, case ignored, such as `Q4_K_M`; as a whole word if one is
/// there. Files that go along with a model are not counted where there are others.
///
/// # Errors
/// If there is no model or more than one; `place` is where that was.
pub fn pick_model(
    place: String,
    names: impl IntoIterator<Item = String>,
    part: &str,
) -> Result<String, Choice> {
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
    let part = part.to_lowercase();
    let has = |test: fn(&str, &str) -> bool| {
        let wanted =
            models.iter().filter(|name| part.is_empty() || test(&name.to_lowercase(), &part));
        wanted.cloned().collect::<Vec<_>>()
    };
    let mut wanted = has(has_word);
    if wanted.is_empty() {
        wanted = has(|name, part| name.contains(part));
    }
    if wanted.iter().any(|name| !is_companion(name)) {
        wanted.retain(|name| !is_companion(name));
    }
    match <[String; 1]>::try_from(wanted) {
        Ok([only]) => Ok(only),
        // Of a part that no name has, what there is to choose from.
        Err(wanted) => {
            Err(Choice { place, names: if wanted.is_empty() { models } else { wanted } })
        }
    }
}

/// Whether a name ends as those of GGUF files do.
pub fn is_gguf(name: &str) -> bool {
    name.to_lowercase().ends_with(".gguf")
}

/// Whether no letter, digit or underscore stands before or after: `f16` is no word of `bf16`.
fn has_word(name: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    name.match_indices(word)
        .any(|(at, _)| !name[..at].ends_with(joins) && !name[at + word.len()..].starts_with(joins))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(names: &[&str], part: &str) -> String {
        let names = names.iter().map(|name| (*name).to_owned());
        pick_model("here".into(), names, part).unwrap_or_else(|choice| choice.to_string())
    }

    #[test]
    fn the_only_model_is_found() {
        assert_eq!(pick(&["a.GGUF"], ""), "a.GGUF");
        assert_eq!(pick(&[], ""), "no GGUF file at here");
        let two = ["m-Q4_K_M.gguf", "m-Q8_0.gguf"];
        assert_eq!(pick(&two, "q8_0"), "m-Q8_0.gguf");
        let asked = "2 models at here: m-Q4_K_M.gguf, m-Q8_0.gguf; name one of them";
        assert_eq!(pick(&two, ""), asked);
        assert_eq!(pick(&two, "F16"), asked);
        let floats = ["m-BF16.gguf", "m-F16.gguf", "UD/m-Q4_K_XL.gguf"];
        assert_eq!(pick(&floats, "f16"), "m-F16.gguf");
        assert_eq!(pick(&floats, "q4_k"), "UD/m-Q4_K_XL.gguf");
        assert!(pick(&["m-Q4_K_M.gguf", "m-Q4_K_S.gguf"], "Q4_K").starts_with("2 models"));
        let shown = pick(&["a\u{1b}[2J.gguf", "b.gguf"], "");
        assert!(shown.contains("a\u{fffd}[2J.gguf"), "{shown}");
    }

    #[test]
    fn shards_are_one_model() {
        let shards = ["q/m-00002-of-00002.gguf", "q/m-00001-of-00002.gguf"];
        assert_eq!(pick(&shards, ""), shards[1]);
        assert_eq!(pick(&[shards[0], shards[1], "q/m-Q8_0.gguf"], "q8_0"), "q/m-Q8_0.gguf");
        let others = pick(&[shards[0], shards[1], "n-00001-of-00002.gguf"], "");
        assert!(others.starts_with("2 models at here: n-00001"), "{others}");
    }

    #[test]
    fn what_goes_along_is_not_counted() {
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
            assert_eq!(pick(&[other, model], ""), model, "{other}");
            assert_eq!(pick(&[model, other], "Q4_K_M"), model, "{other}");
            assert_eq!(pick(&[other], ""), other);
        }
        assert_eq!(pick(&["mmproj-F16.gguf", model], "mmproj"), "mmproj-F16.gguf");
        for model in ["smtp-7B.gguf", "m-lora-merged.gguf", "vocab-7B-v1.0.gguf"] {
            assert!(pick(&[model, "z.gguf"], "").starts_with("2 models"), "{model}");
        }
        assert!(pick(&["mmproj-F16.gguf", "mmproj-F32.gguf"], "").starts_with("2 models"));
    }
}
