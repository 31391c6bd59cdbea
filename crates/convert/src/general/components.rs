//! What a model id such as `meta-llama/Llama-3-8B-Instruct` tells about the model.
//!
//! The rules are those of llama.cpp's converter, so that files get the same names.

use std::sync::LazyLock;

use gguf::ParameterCount;
use regex::Regex;

/// A model id taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModelId {
    /// The id without the organization.
    pub name: String,
    /// What stands before the slash.
    pub organization: Option<String>,
    /// The family with its generation: `Llama-3`.
    pub basename: Option<String>,
    /// What it was tuned for: `Instruct`.
    pub finetune: Option<String>,
    /// The version, if it is not part of the basename.
    pub version: Option<String>,
    /// The weight class: `8B`.
    pub size_label: Option<String>,
}

/// One part between dashes.
struct Part {
    text: String,
    role: Option<Role>,
    /// Beside its role, a version can belong to the basename.
    in_basename: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Version,
    /// A tensor type, or a redundant `lora`: in no component.
    Type,
    Size,
    Finetune,
}

/// Matches whole parts in any case. ASCII only, as `Size` parts are cut bytewise.
fn pattern(alternatives: &str) -> Regex {
    Regex::new(&format!("^(?i-u:{alternatives})$")).expect("the patterns below are valid")
}

static VERSION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(v|iter)?[0-9]+([.][0-9]+)*"));
static TYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r"i?q[0-9](_\w)*|b?fp?(16|32)"));
static SIZE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"((a|[0-9]+x)?[0-9]+([._][0-9]+)?[kmbt][0-9]?|small|mini|medium|large|x?xl)")
});
static FINETUNE: LazyLock<Regex> = LazyLock::new(|| pattern(r"chat|instruct|vision|lora"));

impl ModelId {
    /// Takes an id, or a directory name, apart.
    ///
    /// `parameters` (0 if unknown) tell a size label from a context length: `32K` is none for a
    /// model of 8 billion.
    pub fn parse(id: &str, parameters: &ParameterCount) -> Self {
        // With blanks it is a title for people.
        if id.contains(' ') {
            return Self { name: id.into(), ..Self::default() };
        }
        let (organization, name) = match id.split_once('/') {
            // Relative paths.
            Some((directory, name)) if directory.starts_with('.') => (None, name),
            Some((organization, name)) => (Some(organization), name),
            None => (None, id),
        };
        let parts = name.split('-').filter(|part| !part.is_empty());
        let mut parts: Vec<Part> =
            parts.enumerate().map(|(i, part)| annotate(i == 0, part, parameters)).collect();
        prefer_numbers(&mut parts);
        mark_basename(&mut parts);

        let with = |role| move |part: &&Part| part.role == Some(role);
        let mut sizes: Vec<&str> = Vec::new();
        for part in parts.iter().filter(with(Role::Size)) {
            if !sizes.contains(&&*part.text) {
                sizes.push(&part.text);
            }
        }
        let size_label = (!sizes.is_empty()).then(|| sizes.join("-"));
        let finetune = joined(parts.iter().filter(with(Role::Finetune)));
        let version =
            joined(parts.iter().filter(with(Role::Version)).filter(|part| !part.in_basename));
        let basename = joined(parts.iter().filter(|part| part.in_basename));
        // A name without any of the others could be anything.
        let telling = size_label.is_some() || finetune.is_some() || version.is_some();
        Self {
            name: name.into(),
            organization: organization.map(Into::into),
            basename: basename.filter(|_| telling),
            finetune,
            version,
            size_label,
        }
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a Part>) -> Option<String> {
    let texts: Vec<&str> = parts.map(|part| &*part.text).collect();
    (!texts.is_empty()).then(|| texts.join("-"))
}

/// What a part is by itself.
fn annotate(first: bool, part: &str, parameters: &ParameterCount) -> Part {
    let (text, role) = if VERSION.is_match(part) {
        (part.into(), Some(Role::Version))
    } else if TYPE.is_match(part) {
        (part.to_ascii_uppercase(), Some(Role::Type))
    } else if !first && SIZE.is_match(part) {
        let size = normalized_size(part);
        if is_size_of(&size, parameters) {
            (size, Some(Role::Size))
        } else {
            // A context length, which is written with a small letter.
            let (number, unit) = size.split_at(size.len() - 1);
            (format!("{number}{}", unit.to_ascii_lowercase()), Some(Role::Finetune))
        }
    } else if !first && FINETUNE.is_match(part) {
        let redundant = parameters.adapter && part.eq_ignore_ascii_case("lora");
        (part.into(), Some(if redundant { Role::Type } else { Role::Finetune }))
    } else {
        (part.into(), None)
    };
    Part { text, role, in_basename: false }
}

/// `7b1` (as Bloom writes 7.1B) to `7.1B`, `1_5b` to `1.5B`; words stay.
fn normalized_size(part: &str) -> String {
    let mut size = part.replace('_', ".").into_bytes();
    if let [.., unit, digit] = &mut size[..]
        && digit.is_ascii_digit()
    {
        std::mem::swap(unit, digit);
        size.insert(size.len() - 2, b'.');
    }
    if let [.., digit, unit] = &mut size[..]
        && digit.is_ascii_digit()
    {
        unit.make_ascii_uppercase();
    }
    String::from_utf8_lossy(&size).into_owned()
}

/// False if `size` is a plain number far from the model's parameters.
fn is_size_of(size: &str, parameters: &ParameterCount) -> bool {
    // Words, `8x7B` and `A3B` are no plain numbers and count as sizes.
    let (number, unit) = size.split_at(size.len() - 1);
    let Ok(number) = number.parse::<f64>() else { return true };
    let thousands = " KMBT".find(unit).unwrap_or(0);
    let label = number * 1000f64.powi(thousands as i32);
    let total = parameters.total;
    if total == 0 {
        return true;
    }
    if parameters.adapter {
        // Adapters may leave layers out: only labels that are much too small are none.
        return label >= (total / 8) as f64;
    }
    let tolerance = u128::from(total) * 7 / 8;
    (label - total as f64).abs() <= tolerance as f64
}

/// Where a size is given as a number, words such as `mini` are names.
fn prefer_numbers(parts: &mut [Part]) {
    let numeric = |part: &Part| part.text.bytes().any(|b| b.is_ascii_digit());
    if parts.iter().any(|part| part.role == Some(Role::Size) && numeric(part)) {
        for part in parts.iter_mut().filter(|part| part.role == Some(Role::Size)) {
            if !numeric(part) {
                part.role = None;
            }
        }
    }
}

/// The basename is the words and versions up to the first part that is something else, without
/// the versions at its end; words after it are fine-tunes.
fn mark_basename(parts: &mut [Part]) {
    let in_basename = |part: &Part| match part.role {
        None => part.text.starts_with(char::is_alphabetic),
        role => role == Some(Role::Version),
    };
    let end = parts.iter().position(|part| !in_basename(part)).unwrap_or(parts.len());
    let (base, rest) = parts.split_at_mut(end);
    base.iter_mut().for_each(|part| part.in_basename = true);
    for part in rest.iter_mut() {
        part.role = part.role.or(Some(Role::Finetune));
    }
    // Only where the basename is all there is: otherwise its version is that of the family.
    if rest.is_empty() {
        for part in base.iter_mut().rev().take_while(|part| part.role.is_some()) {
            part.in_basename = false;
        }
    }
}

/// A title for people: dashes become blanks, and words in small letters get capitals unless they
/// are versions or start with a digit.
pub(super) fn title(id: &str) -> String {
    let words = id.split(|c: char| c == '-' || c.is_whitespace()).filter(|word| !word.is_empty());
    let words: Vec<String> = words
        .map(|word| if wants_capitals(word) { capitalized(word) } else { word.into() })
        .collect();
    words.join(" ")
}

fn wants_capitals(word: &str) -> bool {
    let version = |word: &str| {
        word.strip_prefix('v').is_some_and(|numbers| {
            numbers.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    word.chars().any(char::is_lowercase)
        && !word.chars().any(char::is_uppercase)
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && !version(word)
}

/// Every letter that does not follow a letter: `qwen2moe` becomes `Qwen2Moe`.
fn capitalized(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut inside = false;
    for c in word.chars() {
        let cased = c.is_lowercase() || c.is_uppercase();
        if cased && !inside {
            text.extend(c.to_uppercase());
        } else {
            text.push(c);
        }
        inside = cased;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against llama.cpp's converter: ids, parameter counts and results by `general.py`.
    #[test]
    fn ids_come_apart_as_in_llama_cpp() {
        let cases = include_str!("../../tests/data/model-ids.json");
        let cases: Vec<serde_json::Value> = serde_json::from_str(cases).unwrap();
        assert!(cases.len() > 60);
        for case in cases {
            let id = case["id"].as_str().unwrap();
            let total = case["total_params"].as_i64().unwrap();
            let count = ParameterCount {
                total: total.unsigned_abs(),
                adapter: total < 0,
                ..Default::default()
            };
            let text = |key: &str| case[key].as_str().map(str::to_owned);
            let expected = ModelId {
                name: text("name").unwrap(),
                organization: text("organization"),
                basename: text("basename"),
                finetune: text("finetune"),
                version: text("version"),
                size_label: text("size_label"),
            };
            assert_eq!(ModelId::parse(id, &count), expected, "{id} {total}");
            assert_eq!(title(id), case["title"], "{id}");
        }
    }
}
