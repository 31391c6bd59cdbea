//! File names of the GGUF naming convention:
//! `<Sidecar>-<BaseName>-<SizeLabel>-<FineTune>-<Version>-<Encoding>-<Type>-<Shard>.gguf`.
//!
//! The convention and its regular expression are in `docs/gguf.md` of the ggml repository. Base
//! name, size label and version are required; the rest is optional.

use std::fmt;
use std::str::FromStr;

use crate::file_type::file_type_named;
use crate::tensor_type::TensorType;
use crate::{Metadata, ParameterCount};

/// Components of a file name that follows the convention.
///
/// ```
/// use gguf::ModelName;
/// let name: ModelName = "Mixtral-8x7B-Instruct-v0.1-Q4_K_M.gguf".parse()?;
/// assert_eq!(name.base_name, "Mixtral");
/// assert_eq!(name.size_label.as_deref(), Some("8x7B"));
/// assert_eq!(name.fine_tune.as_deref(), Some("Instruct"));
/// assert_eq!(name.version.as_deref(), Some("v0.1"));
/// assert_eq!(name.encoding.as_deref(), Some("Q4_K_M"));
///
/// let other = ModelName { encoding: Some("Q8_0".into()), ..name };
/// assert_eq!(other.to_string(), "Mixtral-8x7B-Instruct-v0.1-Q8_0.gguf");
/// # Ok::<(), gguf::NameError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelName {
    /// Kind of sidecar, if the file is not a model itself.
    pub sidecar: Option<Sidecar>,
    /// Model family: `Llama-3`.
    pub base_name: String,
    /// Size class, with optional attributes: `8x7B`, `3.8B-ContextLength4k`.
    pub size_label: Option<String>,
    /// Purpose of the finetuning: `Instruct`.
    pub fine_tune: Option<String>,
    /// Version: `v1.0`.
    pub version: Option<String>,
    /// Encoding of the weights: `Q4_K_M`.
    pub encoding: Option<String>,
    /// Kind of contents, if not a whole model.
    pub kind: Option<NameKind>,
    /// Shard of a split model.
    pub shard: Option<NameShard>,
}

/// File that is loaded beside a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sidecar {
    /// Multimodal projector (mmproj): vision or audio encoder.
    Mmproj,
    /// Multi-token prediction (MTP) heads, for speculative decoding.
    Mtp,
}

/// Contents of a file that is not a whole model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// LoRA adapter.
    Lora,
    /// Vocabulary and metadata only.
    Vocab,
}

/// Position of a shard in a split model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameShard {
    /// Number of the shard, from 1 to `count`.
    pub number: u32,
    /// Number of shards, at most 99999.
    pub count: u32,
}

impl NameShard {
    /// Splits a file name into prefix and shard: `m-00002-of-00003.gguf` is shard 2 of 3 of `m`.
    ///
    /// `None` if the name has no valid shard suffix.
    pub fn strip(file_name: &str) -> Option<(&str, Self)> {
        let stem = file_name.strip_suffix(".gguf")?;
        let shard = parse_shard(&stem.split('-').collect::<Vec<_>>())?;
        let prefix = file_name.strip_suffix(&shard.suffix())?;
        (1..=shard.count).contains(&shard.number).then_some((prefix, shard))
    }

    /// Returns the file name of this shard; the inverse of `strip`.
    pub fn file_name(self, prefix: &str) -> String {
        prefix.to_owned() + &self.suffix()
    }

    /// Returns the suffix after the prefix: `-00002-of-00003.gguf`.
    pub fn suffix(self) -> String {
        format!("-{:05}-of-{:05}.gguf", self.number, self.count)
    }
}

impl ModelName {
    /// Returns the default name of an output: the stem of its source with the encoding of the
    /// output, so that outputs of two sources have two names; with a size label, counted from
    /// tensor names and shapes, if the stem has none.
    ///
    /// ```
    /// use gguf::ModelName;
    /// let tensors = [("token_embd.weight", &[4096, 32000][..])];
    /// let name = |stem| ModelName::for_output(stem, tensors, "Q4_K_M").to_string();
    /// assert_eq!(name("model-f16"), "model-131M-Q4_K_M.gguf");
    /// assert_eq!(name("Llama-7B-v1.0.F16"), "Llama-7B-v1.0-Q4_K_M.gguf");
    /// ```
    pub fn for_output<'a>(
        stem: &str,
        tensors: impl IntoIterator<Item = (&'a str, &'a [u64])>,
        encoding: &str,
    ) -> Self {
        // Many names have a dot before the encoding.
        let stem = match stem.rsplit_once(['-', '.']) {
            Some((start, end)) if !start.is_empty() && is_named_encoding(end) => start,
            _ => stem,
        };
        let base = stem.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        let name = Self::parse_lenient(&format!("{base}.gguf")).unwrap_or_else(|_| {
            let size_label = ParameterCount::from_tensors(tensors).size_label();
            Self { base_name: base, size_label, ..Self::default() }
        });
        Self { encoding: Some(encoding.to_owned()), ..name }
    }
}

/// Returns true if a component is the name of an encoding, and not a number.
fn is_named_encoding(part: &str) -> bool {
    let is_named = file_type_named(part).is_some() || part.parse::<TensorType>().is_ok();
    is_named && part.starts_with(|c: char| c.is_ascii_alphabetic())
}

impl Sidecar {
    const ALL: [Self; 2] = [Self::Mmproj, Self::Mtp];

    /// Returns the word in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mmproj => "mmproj",
            Self::Mtp => "mtp",
        }
    }
}

/// Returns true if the name or path is that of a file beside a model: a [`Sidecar`], an importance
/// matrix, an adapter or a vocabulary.
pub(crate) fn is_companion(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = match NameShard::strip(name) {
        Some((prefix, _)) => prefix,
        None => name.rsplit_once('.').map_or(name, |(stem, _)| stem),
    };
    let words: Vec<String> = stem.split(['-', '.', '_']).map(str::to_lowercase).collect();
    let is_kind =
        |word: &String| NameKind::ALL.iter().any(|kind| kind.name().to_lowercase() == *word);
    words.first().is_some_and(|first| Sidecar::ALL.iter().any(|one| one.name() == first))
        || words.iter().any(|word| [Sidecar::Mmproj.name(), "imatrix"].contains(&word.as_str()))
        || words.last().is_some_and(is_kind)
}

impl NameKind {
    const ALL: [Self; 2] = [Self::Lora, Self::Vocab];

    /// Returns the word in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lora => "LoRA",
            Self::Vocab => "vocab",
        }
    }
}

/// Reason why a file name does not follow the convention.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The extension is not `.gguf`.
    #[error("the name does not end in `.gguf`")]
    Extension,
    /// The version is missing or misplaced.
    #[error(
        "no version such as `v1.0` before the encoding, which the convention asks for and most names omit"
    )]
    Version,
    /// The size label after the base name is missing.
    #[error("no size label such as `7B` or `8x7B` after the base name")]
    SizeLabel,
    /// The base name is missing or invalid.
    #[error(
        "the base name has `{0}`; use letters and digits, and a letter first unless all digits"
    )]
    BaseName(String),
    /// The finetune has invalid characters.
    #[error("the fine-tune `{0}` has other characters than letters, digits and dashes")]
    FineTune(String),
    /// The shard number is not between 1 and the number of shards.
    #[error("shard {number} of {count} does not exist; they count from 00001")]
    Shard {
        /// Shard number in the name.
        number: u32,
        /// Number of shards in the name.
        count: u32,
    },
}

impl FromStr for ModelName {
    type Err = NameError;

    /// Parses a file name (no directories).
    ///
    /// Matches the regular expression of the specification, except where its prose is stricter: no
    /// component is empty (the expression accepts two dashes), and shards count from 1.
    ///
    /// # Errors
    /// The first invalid component.
    fn from_str(file_name: &str) -> Result<Self, NameError> {
        parse_with(file_name, |parts, _| parse_tail(parts))
    }
}

/// Parses a name; `middle` parses the components from base name to encoding.
fn parse_with(
    file_name: &str,
    middle: impl Fn(&[&str], Option<NameKind>) -> Result<ModelName, NameError>,
) -> Result<ModelName, NameError> {
    let stem = file_name.strip_suffix(".gguf").ok_or(NameError::Extension)?;
    let mut parts: Vec<&str> = stem.split('-').collect();
    let shard = parse_shard(&parts);
    if let Some(NameShard { number, count }) = shard {
        if number == 0 || number > count {
            return Err(NameError::Shard { number, count });
        }
        parts.truncate(parts.len() - 3);
    }
    let kind = NameKind::ALL.into_iter().find(|kind| parts.last() == Some(&kind.name()));
    if kind.is_some() {
        parts.pop();
    }
    let sidecar = Sidecar::ALL.into_iter().find(|sidecar| parts.first() == Some(&sidecar.name()));
    let name = match sidecar {
        // The word of a sidecar may be a base name: `mtp-7B-v1.0.gguf`.
        Some(_) => middle(&parts[1..], kind)
            .map(|name| ModelName { sidecar, ..name })
            .or_else(|_| middle(&parts, kind)),
        None => middle(&parts, kind),
    }?;
    Ok(ModelName { kind, shard, ..name })
}

/// Base name of a model without a name.
const NAMELESS: &str = "ggml-model";

/// Parses the middle of names as tools write them: see [`ModelName::parse_lenient`].
fn parse_lenient_middle(parts: &[&str], kind: Option<NameKind>) -> Result<ModelName, NameError> {
    let is_known = |part: &&&str| {
        file_type_named(part).is_some()
            || part.parse::<TensorType>().is_ok()
            || part.eq_ignore_ascii_case("COPY")
    };
    let encoding = parts.last().filter(is_known).map(|part| (*part).to_owned());
    let parts = &parts[..parts.len() - usize::from(encoding.is_some())];
    let version = parts.last().filter(|part| is_version(part)).map(|part| (*part).to_owned());
    let parts = &parts[..parts.len() - usize::from(version.is_some())];
    let size = parts.iter().skip(1).position(|part| is_size(part)).map(|at| at + 1);
    // Vocabularies have no weights to count.
    let needs_size = parts.join("-") != NAMELESS && kind != Some(NameKind::Vocab);
    if size.is_none() && needs_size {
        return Err(NameError::SizeLabel);
    }
    let (base, rest) = parts.split_at(size.unwrap_or(parts.len()));
    if let Some(empty) = parts.iter().find(|part| part.is_empty()) {
        return Err(NameError::BaseName((*empty).to_owned()));
    }
    let sized = match rest {
        [_, next, ..] if is_attribute(next) => 2,
        _ => rest.len().min(1),
    };
    let (size, fine_tune) = rest.split_at(sized);
    let joined = |parts: &[&str]| (!parts.is_empty()).then(|| parts.join("-"));
    Ok(ModelName {
        base_name: base.join("-"),
        size_label: joined(size),
        fine_tune: joined(fine_tune),
        version,
        encoding,
        ..ModelName::default()
    })
}

/// Parses `-00001-of-00003` at the end of a name.
fn parse_shard(parts: &[&str]) -> Option<NameShard> {
    let [_, .., number, "of", count] = parts else { return None };
    let five_digits =
        |part: &str| (part.len() == 5 && all_digits(part)).then(|| part.parse().ok()).flatten();
    Some(NameShard { number: five_digits(number)?, count: five_digits(count)? })
}

/// Parses base name to encoding. The version is the last component, or the last but one before an
/// encoding; since an encoding may look like a version (`-v1-v2`), the first match counts.
fn parse_tail(parts: &[&str]) -> Result<ModelName, NameError> {
    let mut fault = NameError::Version;
    let (last, before) = (parts.len().checked_sub(1), parts.len().checked_sub(2));
    for at in [last, before].into_iter().flatten().filter(|&at| is_version(parts[at])) {
        let encoding = parts.get(at + 1).copied();
        if encoding.is_some_and(|part| !is_encoding(part)) {
            continue;
        }
        match parse_head(&parts[..at]) {
            Ok(name) => {
                let version = Some(parts[at].into());
                return Ok(ModelName { version, encoding: encoding.map(Into::into), ..name });
            }
            Err(err) => fault = err,
        }
    }
    Err(fault)
}

/// Parses base name to finetune.
fn parse_head(parts: &[&str]) -> Result<ModelName, NameError> {
    let sizes = parts.iter().skip(1).position(|part| is_size(part));
    // No component of a base name looks like a size, except the first.
    let (base, rest) = parts.split_at(sizes.ok_or(NameError::SizeLabel)? + 1);
    // A digit starts a component of the base name only if it is the first, or all characters are
    // digits.
    let fits = |(i, part): (usize, &str)| {
        let number = |c: char| c.is_ascii_digit() || c.is_whitespace();
        part.chars().all(is_word)
            && (i == 0
                || part.chars().all(number)
                || !part.starts_with(|c: char| c.is_ascii_digit()))
    };
    if let Some((_, part)) = base.iter().copied().enumerate().find(|&part| !fits(part)) {
        return Err(NameError::BaseName(part.into()));
    }
    let base_name = base.join("-");
    if base_name.is_empty() {
        return Err(NameError::BaseName(base_name));
    }
    let sized = if rest.get(1).is_some_and(|part| is_attribute(part)) { 2 } else { 1 };
    let (size, fine_tune) = rest.split_at(sized);
    let fine_tune = (!fine_tune.is_empty()).then(|| fine_tune.join("-"));
    if let Some(tune) = &fine_tune
        && (tune.is_empty() || !tune.chars().all(|c| is_word(c) || c == '-'))
    {
        return Err(NameError::FineTune(tune.clone()));
    }
    Ok(ModelName { base_name, size_label: Some(size.join("-")), fine_tune, ..Default::default() })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c.is_whitespace()
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Matches `7` and `3.8`.
fn is_decimal(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    all_digits(whole) && all_digits(fraction)
}

/// Matches `v1` and `v0.1.2`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|numbers| numbers.split('.').all(all_digits))
}

/// Matches `7B`, `3.8B` and `8x22B`.
fn is_size(part: &str) -> bool {
    let number = part.strip_suffix(|c: char| c.is_ascii_alphabetic());
    number.is_some_and(|number| match number.split_once('x') {
        Some((experts, number)) => all_digits(experts) && is_decimal(number),
        None => is_decimal(number),
    })
}

/// Matches an attribute of the size label: `ContextLength4k`.
fn is_attribute(part: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic();
    let number = part.trim_start_matches(letter);
    let decimal = number.trim_end_matches(letter);
    number.len() < part.len() && decimal.len() < number.len() && is_decimal(decimal)
}

fn is_encoding(part: &str) -> bool {
    !part.is_empty()
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !NameKind::ALL.iter().any(|kind| part.starts_with(kind.name()))
}

impl ModelName {
    /// Parses a file name as tools write it, including llama.cpp's converter and this toolkit: by
    /// the convention, but with an optional version and any characters in base name and finetune.
    /// Without a version, the encoding must be a known one.
    ///
    /// ```
    /// use gguf::ModelName;
    /// let name = ModelName::parse_lenient("Qwen2.5-7B-Instruct-Q4_K_M.gguf")?;
    /// assert_eq!((&*name.base_name, name.encoding.as_deref()), ("Qwen2.5", Some("Q4_K_M")));
    /// assert!(ModelName::parse_lenient("model.gguf").is_err());
    /// # Ok::<(), gguf::NameError>(())
    /// ```
    ///
    /// # Errors
    /// If the size label is missing too, except for `ggml-model`, the name of a model without a
    /// name.
    pub fn parse_lenient(file_name: &str) -> Result<Self, NameError> {
        file_name.parse().or_else(|_| parse_with(file_name, parse_lenient_middle))
    }

    /// Returns the name from the `general.*` keys of a file and the given encoding.
    ///
    /// A missing base name falls back to `general.name`, then to `ggml-model`, as in llama.cpp's
    /// converter; other missing components are omitted, so that the name may be shorter than the
    /// convention requires.
    ///
    /// ```
    /// use gguf::{Metadata, ModelName};
    /// let mut metadata = Metadata::new();
    /// metadata.set("general.basename", "Llama 3");
    /// metadata.set("general.size_label", "8B");
    /// let name = ModelName::from_metadata(&metadata, Some("q8_0"));
    /// assert_eq!(name.to_string(), "Llama-3-8B-Q8_0.gguf");
    /// ```
    pub fn from_metadata(metadata: &Metadata, encoding: Option<&str>) -> Self {
        let text = |key| metadata.str(key).filter(|text| !text.is_empty()).map(str::to_owned);
        let general_type = metadata.str("general.type");
        Self {
            sidecar: (general_type == Some("mmproj")).then_some(Sidecar::Mmproj),
            base_name: text("general.basename")
                .or_else(|| text("general.name"))
                .unwrap_or_else(|| NAMELESS.into()),
            size_label: text("general.size_label"),
            fine_tune: text("general.finetune"),
            version: text("general.version"),
            encoding: encoding.map(str::to_ascii_uppercase),
            kind: (general_type == Some("adapter")).then_some(NameKind::Lora),
            shard: None,
        }
    }
}

/// Formats the file name. Components are trimmed; blanks and slashes become dashes.
///
/// llama.cpp's converter keeps slashes outside of the base name; here a name never contains a
/// directory.
impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sidecar) = self.sidecar {
            write!(f, "{}-", sidecar.name())?;
        }
        f.write_str(&dashed(&self.base_name))?;
        let texts = [&self.size_label, &self.fine_tune, &self.version, &self.encoding];
        for text in texts.into_iter().flatten() {
            write!(f, "-{}", dashed(text))?;
        }
        if let Some(kind) = self.kind {
            write!(f, "-{}", kind.name())?;
        }
        f.write_str(&self.shard.map_or(".gguf".into(), NameShard::suffix))
    }
}

fn dashed(text: &str) -> String {
    text.trim().replace([' ', '/', '\\'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(base: &str, size: &str, version: &str) -> ModelName {
        ModelName {
            base_name: base.into(),
            size_label: Some(size.into()),
            version: Some(version.into()),
            ..Default::default()
        }
    }

    fn some(text: &str) -> Option<String> {
        Some(text.into())
    }

    /// Cases of the specification's own test, and similar ones.
    #[test]
    fn conventional_names_parse_and_generate() {
        let cases = [
            (
                "Mixtral-8x7B-v0.1-KQ2.gguf",
                ModelName { encoding: some("KQ2"), ..name("Mixtral", "8x7B", "v0.1") },
            ),
            (
                "Grok-100B-v1.0-Q4_0-00003-of-00009.gguf",
                ModelName {
                    encoding: some("Q4_0"),
                    shard: Some(NameShard { number: 3, count: 9 }),
                    ..name("Grok", "100B", "v1.0")
                },
            ),
            (
                "Hermes-2-Pro-Llama-3-8B-v1.0-F16.gguf",
                ModelName { encoding: some("F16"), ..name("Hermes-2-Pro-Llama-3", "8B", "v1.0") },
            ),
            (
                "Phi-3-mini-3.8B-ContextLength4k-instruct-v1.0.gguf",
                ModelName {
                    fine_tune: some("instruct"),
                    ..name("Phi-3-mini", "3.8B-ContextLength4k", "v1.0")
                },
            ),
            (
                "mtp-Qwen3-27B-v1.0-Q4_K_M.gguf",
                ModelName {
                    sidecar: Some(Sidecar::Mtp),
                    encoding: some("Q4_K_M"),
                    ..name("Qwen3", "27B", "v1.0")
                },
            ),
            (
                "mmproj-Qwen2-VL-7B-v1.0-F16.gguf",
                ModelName {
                    sidecar: Some(Sidecar::Mmproj),
                    encoding: some("F16"),
                    ..name("Qwen2-VL", "7B", "v1.0")
                },
            ),
            // The word of a sidecar as the base name.
            ("mtp-7B-v1.0.gguf", name("mtp", "7B", "v1.0")),
            // A size as the first component of the base name.
            ("7B-8B-v1.gguf", name("7B", "8B", "v1")),
            (
                "A-7B-Chat-v2-x-v1.0.1-Q8_0-LoRA.gguf",
                ModelName {
                    fine_tune: some("Chat-v2-x"),
                    encoding: some("Q8_0"),
                    kind: Some(NameKind::Lora),
                    ..name("A", "7B", "v1.0.1")
                },
            ),
            (
                "A-7B-v1-vocab.gguf",
                ModelName { kind: Some(NameKind::Vocab), ..name("A", "7B", "v1") },
            ),
            // An encoding that looks like a version, and versions before the version.
            ("A-7B-v1-v2.gguf", ModelName { fine_tune: some("v1"), ..name("A", "7B", "v2") }),
            ("A-7B-v1.0-v2.gguf", ModelName { encoding: some("v2"), ..name("A", "7B", "v1.0") }),
            ("A-7B-LoRA-v1.gguf", ModelName { fine_tune: some("LoRA"), ..name("A", "7B", "v1") }),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), text);
        }
    }

    #[test]
    fn lenient_names_parse() {
        let usual = |text: &str| ModelName::parse_lenient(text);
        for text in [
            "Tiny-KJV-Llama-4M-Q4_K_M.gguf",
            "Qwen2.5-0.5B-Instruct-BF16.gguf",
            "my_model.v2-4M-F16-00001-of-00002.gguf",
            "ggml-model-MXFP4_MOE.gguf",
            "ggml-model-COPY.gguf",
            "Tiny-2.3M-F32-LoRA.gguf",
            "Tiny-vocab.gguf",
            "mmproj-Tiny-4M-F16.gguf",
        ] {
            assert!(text.parse::<ModelName>().is_err(), "{text}");
            assert_eq!(usual(text).unwrap().to_string(), text);
        }
        assert_eq!(usual("A-7B-Chat-Q9.gguf").unwrap().fine_tune, some("Chat-Q9"));
        assert_eq!(usual("A-7B-v1.0-KQ2.gguf"), "A-7B-v1.0-KQ2.gguf".parse());
        assert_eq!(usual("model.gguf"), Err(NameError::SizeLabel));
        assert_eq!(usual("A--7B.gguf"), Err(NameError::BaseName(String::new())));
        assert_eq!(usual(".gguf"), Err(NameError::SizeLabel));
    }

    #[test]
    fn invalid_names_report_the_component() {
        let cases = [
            ("not-a-known-arrangement.gguf", NameError::Version),
            ("Hermes-2-Pro-Llama-3-8B-F16.gguf", NameError::Version),
            ("A-7B-v1.0.bin", NameError::Extension),
            ("A-v1.0.gguf", NameError::SizeLabel),
            ("A--v1.0.gguf", NameError::SizeLabel),
            ("v1.0.gguf", NameError::SizeLabel),
            (".gguf", NameError::Version),
            ("-7B-v1.0.gguf", NameError::BaseName(String::new())),
            ("Qwen2.5-7B-v1.0.gguf", NameError::BaseName("Qwen2.5".into())),
            ("A-2b2-7B-v1.0.gguf", NameError::BaseName("2b2".into())),
            ("A-7B-in_struct-v1.0.gguf", NameError::FineTune("in_struct".into())),
            ("A-7B--v1.0.gguf", NameError::FineTune(String::new())),
            ("A-7B-v1.0-LoRAx.gguf", NameError::Version),
            ("A-7B-v1.0-00000-of-00003.gguf", NameError::Shard { number: 0, count: 3 }),
            ("A-7B-v1.0-00004-of-00003.gguf", NameError::Shard { number: 4, count: 3 }),
            ("A-7B-v1.0-0001-of-00003.gguf", NameError::Version),
            ("00001-of-00001.gguf", NameError::Version),
            ("LoRA.gguf", NameError::Version),
            ("mtp.gguf", NameError::Version),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<ModelName>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn formatted_names_contain_no_directory() {
        let mut metadata = Metadata::new();
        assert_eq!(ModelName::from_metadata(&metadata, None).to_string(), "ggml-model.gguf");
        metadata.set("general.type", "adapter");
        metadata.set("general.name", " a/b c ");
        metadata.set("general.finetune", "../x\\y");
        metadata.set("general.basename", "");
        let name = ModelName::from_metadata(&metadata, Some("bf16"));
        assert_eq!(name.to_string(), "a-b-c-..-x-y-BF16-LoRA.gguf");
    }
}
