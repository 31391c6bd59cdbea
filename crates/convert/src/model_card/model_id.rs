//! Components of a model id such as `meta-llama/Llama-3-8B-Instruct`, by the rules of llama.cpp's converter.

use std::sync::LazyLock;

use gguf::ParameterCount;
use regex::Regex;

/// Components of a model id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModelId {
    /// The id without the organization.
    pub name: String,
    /// Part before the slash.
    pub organization: Option<String>,
    /// Model family and generation: `Llama-3`.
    pub basename: Option<String>,
    /// Purpose of the fine-tune: `Instruct`.
    pub finetune: Option<String>,
    /// Version that is not part of the basename.
    pub version: Option<String>,
    /// Size label: `8B`.
    pub size_label: Option<String>,
}

/// Part between dashes.
struct Part {
    text: String,
    role: Option<Role>,
    /// Whether the part belongs to the basename. A version can.
    in_basename: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Version,
    /// Tensor type, or a redundant `lora`: belongs to no component.
    Type,
    Size,
    Finetune,
}

/// Returns a regex that matches whole parts, ignoring case. It matches ASCII only because `Size` parts are split
/// bytewise.
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
    /// Parses a model id or directory name.
    ///
    /// `parameters` (0 if unknown) distinguish a size label from a context length: `32K` is not the size of an
    /// 8B model.
    pub fn parse(id: &str, parameters: &ParameterCount) -> Self {
        // A name with spaces is a title.
        if id.contains(' ') {
            return Self { name: id.into(), ..Self::default() };
        }
        let (organization, name) = match id.split_once('/') {
            // A relative path.
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
        // A name without size, finetune and version has no recognizable basename.
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

/// Classifies a part without its neighbours.
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
            // A context length has a lowercase unit.
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

/// Normalizes a size: `7b1` (BLOOM's 7.1B) to `7.1B`, `1_5b` to `1.5B`. Words stay.
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

/// Returns false if `size` is a number that is far from the model's number of parameters.
fn is_size_of(size: &str, parameters: &ParameterCount) -> bool {
    // Words, `8x7B` and `A3B` are not plain numbers and count as sizes.
    let (number, unit) = size.split_at(size.len() - 1);
    let Ok(number) = number.parse::<f64>() else { return true };
    let thousands = " KMBT".find(unit).unwrap_or(0);
    let label = number * 1000f64.powi(thousands as i32);
    let total = parameters.total;
    if total == 0 {
        return true;
    }
    if parameters.adapter {
        // An adapter may lack layers, so only a much too small label is rejected.
        return label >= (total / 8) as f64;
    }
    let tolerance = u128::from(total) * 7 / 8;
    (label - total as f64).abs() <= tolerance as f64
}

/// If a part has a size as a number, words such as `mini` are names.
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

/// Marks the basename: words and versions up to the first other part. Words after it are fine-tunes. Versions at
/// the end of a name that is all basename do not belong to it.
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
    // With other parts behind it, the version is that of the model family.
    if rest.is_empty() {
        for part in base.iter_mut().rev().take_while(|part| part.role.is_some()) {
            part.in_basename = false;
        }
    }
}

/// Returns a title: dashes become spaces, and lowercase words are capitalized unless they are versions or start
/// with a digit.
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

/// Capitalizes every letter that does not follow a letter: `qwen2moe` becomes `Qwen2Moe`.
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

    /// `model_card.py` writes the ids, parameter counts and results of llama.cpp's converter.
    #[test]
    fn model_ids_parse_as_in_llama_cpp() {
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
