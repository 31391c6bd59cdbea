//! Inverse of [`super::pre`]: the parts of a `tokenizer.json` for a `tokenizer.ggml.pre`.

use serde_json::{Value, json};

use super::pre_table::TABLE;
use super::step::Step;

/// Normalizer and pre-tokenizer of a `tokenizer.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Structure {
    pub normalizer: Value,
    pub pre_tokenizer: Value,
    pub ignore_merges: bool,
}

/// Returns the structure for a name; `None` if it is unknown.
pub(crate) fn pre_tokenizer(name: &str) -> Option<Structure> {
    let row = TABLE.iter().find(|row| row.names().contains(&name))?;
    let (mut normalizers, mut cuts) = (Vec::new(), Vec::new());
    for step in row.steps {
        match step {
            Step::Replace { from, to } => normalizers.push(json!({
                "type": "Replace", "pattern": { "String": from }, "content": to,
            })),
            Step::Split { regex, behavior } => cuts.push(json!({
                "type": "Split", "pattern": { "Regex": regex }, "behavior": behavior,
                "invert": false,
            })),
            Step::Punctuation { behavior } => {
                cuts.push(json!({ "type": "Punctuation", "behavior": behavior }));
            }
            Step::Bytes => cuts.push(json!({
                "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": false,
            })),
            Step::Other(_) => return None,
        }
    }
    let sequence = |kind: &str, list: &str, mut parts: Vec<Value>| match parts.len() {
        0 => Value::Null,
        1 => parts.remove(0),
        _ => json!({ "type": kind, list: parts }),
    };
    Some(Structure {
        normalizer: sequence("Sequence", "normalizers", normalizers),
        pre_tokenizer: sequence("Sequence", "pretokenizers", cuts),
        ignore_merges: row.ignore_merges,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_pre_tokenizers_are_recognized() {
        for row in TABLE {
            let name = row.name;
            let structure = pre_tokenizer(name).unwrap();
            let tokenizer = json!({
                "normalizer": structure.normalizer,
                "pre_tokenizer": structure.pre_tokenizer,
                "model": { "ignore_merges": structure.ignore_merges },
            });
            let found = super::super::pre::recognize(
                &tokenizer,
                &[name],
                std::path::Path::new("tokenizer.json"),
                &mut vec![],
            );
            assert_eq!(found.unwrap(), name);
        }
    }
}
