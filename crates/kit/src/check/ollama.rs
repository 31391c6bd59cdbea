//! Chat templates that Ollama replaces by its own.
//!
//! `ollama create` looks for the chat template in a list of known ones, and puts a template of its own in place of one
//! that is close enough (`Named` in `template/template.go` of Ollama's repository).

use std::path::Path;

use gguf::Finding;
use gguf_tokenizer::template::TemplateSource;
use serde_json::Value as Json;

use crate::{Error, open};

/// Levenshtein distance from which Ollama does not take a template for a known one.
const LIMIT: usize = 100;

/// Looks for the chat template of `source` in the folder `template` of Ollama's repository: `index.json` has the known
/// templates, and `NAME.gotmpl` what takes their place.
///
/// # Errors
/// If the model or the list cannot be read.
pub(super) fn replaced(source: &str, folder: &Path) -> Result<Vec<Finding>, Error> {
    let list = folder.join("index.json");
    let bytes = std::fs::read(&list).map_err(|fault| Error::read(&list, fault))?;
    let known = known(&bytes).ok_or_else(|| {
        let what = "not a list of objects with `name` and `template`";
        Error::input(
            "json-invalid",
            &list,
            what,
            "name the folder `template` of Ollama's repository",
        )
    })?;
    let opened = open(source)?;
    let Some(template) = opened.model().metadata().str(TemplateSource::KEY) else {
        return Ok(Vec::new());
    };
    let Some((name, distance)) = nearest(template, &known) else { return Ok(Vec::new()) };
    let own = std::fs::read_to_string(folder.join(format!("{name}.gotmpl")));
    let ignores_tools = template.contains("tools") && own.is_ok_and(|own| !own.contains(".Tools"));
    let tools = if ignores_tools { ", which ignores tools" } else { "" };
    let message = format!(
        "`ollama create` replaces the chat template by Ollama's own {name:?}{tools} (Levenshtein distance {distance}, \
         limit {LIMIT})"
    );
    let finding = Finding::note("template-ollama", message).key(TemplateSource::KEY);
    Ok(vec![finding.help("compare prompts; a TEMPLATE line in the Modelfile takes precedence")])
}

/// Returns name and template of the known ones.
fn known(json: &[u8]) -> Option<Vec<(String, String)>> {
    let list: Vec<Json> = serde_json::from_slice(json).ok()?;
    let text = |entry: &Json, key: &str| entry[key].as_str().map(str::to_owned);
    list.iter().map(|entry| Some((text(entry, "name")?, text(entry, "template")?))).collect()
}

/// Returns name and distance of the first of the nearest templates, if it is near enough.
fn nearest<'k>(template: &str, known: &'k [(String, String)]) -> Option<(&'k str, usize)> {
    let len = template.chars().count();
    // The distance is at least the difference of lengths.
    let near = known.iter().filter(|(_, other)| other.chars().count().abs_diff(len) < LIMIT);
    let distances = near.map(|(name, other)| (name.as_str(), strsim::levenshtein(template, other)));
    distances.min_by_key(|(_, distance)| *distance).filter(|(_, distance)| *distance < LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_nearest_is_chosen_below_the_limit() {
        let known = ["aaaa", "aabb", "bbaa"].map(|text| (format!("name {text}"), text.repeat(30)));
        assert_eq!(nearest(&"aaaa".repeat(30), &known), Some(("name aaaa", 0)));
        assert_eq!(nearest(&("aaaa".repeat(30) + "é"), &known), Some(("name aaaa", 1)));
        // One replacement in each of 30 repetitions from two of them.
        assert_eq!(nearest(&"aaab".repeat(30), &known), Some(("name aaaa", 30)));
        for (count, expected) in [(99, Some(("x", 99))), (100, None)] {
            assert_eq!(nearest(&"a".repeat(count), &[("x".into(), String::new())]), expected);
        }
    }

    #[test]
    fn only_lists_of_templates_are_known() {
        assert_eq!(known(b"[]"), Some(vec![]));
        let entry = br#"[{"name": "chatml", "template": "T"}]"#;
        assert_eq!(known(entry), Some(vec![("chatml".into(), "T".into())]));
        for wrong in [&b"{}"[..], b"[1]", br#"[{"name": "a"}]"#, b"["] {
            assert_eq!(known(wrong), None);
        }
    }
}
