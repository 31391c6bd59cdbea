//! Compares the tokenizer of a model file with a `tokenizer.json`, and names the rule that differs.

mod corpus;
mod findings;
mod lost_rules;

use std::fmt;

pub use corpus::CORPUS;
use gguf::Error;
pub use lost_rules::LostRule;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::huggingface::HuggingFace;
use crate::options::EncodeOptions;
use crate::tokenizer::Tokenizer;

/// A text that two tokenizers encode differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The text, shortened as far as it still differs.
    pub text: String,
    /// Ids of the model file's tokenizer.
    pub ours: Vec<u32>,
    /// Ids of `tokenizer.json`.
    pub theirs: Vec<u32>,
    /// The rule that differs, as far as it can be inferred from the ids.
    pub rule: Rule,
}

/// A stage of a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// BOS and EOS tokens.
    BosEos,
    /// Added tokens, which are matched before everything else.
    AddedToken,
    /// Normalization before the text is split.
    Normalizer,
    /// Token ids.
    Vocabulary,
    /// Splitting into words.
    PreTokenizer,
    /// Merges or scores within a word.
    Merges,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BosEos => "BOS and EOS: only one of them adds these tokens",
            Self::AddedToken => "added token: only one of them matches it in the text",
            Self::Normalizer => "normalizer: only one of them rewrites the text",
            Self::Vocabulary => "vocabulary: the token has another id",
            Self::PreTokenizer => "pre-tokenizer: the text is split into other words",
            Self::Merges => "merges or scores: the word is split into other tokens",
        })
    }
}

/// Encoding without BOS and EOS.
const WITHOUT_BOS_EOS: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };

/// Texts longer than this many bytes are not shortened letter by letter.
const MAX_FINE_LEN: usize = 256;

/// Compares the encodings of a model file's tokenizer and a `tokenizer.json`.
pub struct TokenizerDiff<'t> {
    /// Tokenizer of the model file.
    pub ours: &'t Tokenizer,
    /// Tokenizer of `tokenizer.json`.
    pub theirs: &'t HuggingFace,
}

impl TokenizerDiff<'_> {
    /// Returns the difference in BOS and EOS tokens, if there is one: it is the same for each text.
    ///
    /// # Errors
    /// If `tokenizer.json` fails on a simple text.
    pub fn bos_eos(&self) -> Result<Option<Difference>, Error> {
        let text = "a";
        let difference = |options| -> Result<_, Error> {
            let (ours, theirs) =
                (self.ours.encode(text, options), self.theirs.encode(text, options)?);
            Ok((ours != theirs).then_some((ours, theirs)))
        };
        let at_ends = difference(EncodeOptions { add_special: true, ..WITHOUT_BOS_EOS })?;
        Ok(at_ends.filter(|_| difference(WITHOUT_BOS_EOS).is_ok_and(|bare| bare.is_none())).map(
            |(ours, theirs)| Difference { text: text.to_owned(), ours, theirs, rule: Rule::BosEos },
        ))
    }

    /// Returns the difference in a text, if there is one, without BOS and EOS.
    ///
    /// # Errors
    /// If `tokenizer.json` fails on the text.
    pub fn text(&self, text: &str) -> Result<Option<Difference>, Error> {
        if !self.differs(text)? {
            return Ok(None);
        }
        let text = self.shortened(text)?;
        let (ours, theirs) =
            (self.ours.encode(text, WITHOUT_BOS_EOS), self.theirs.encode(text, WITHOUT_BOS_EOS)?);
        let rule = self.rule(text, &ours, &theirs)?;
        Ok(Some(Difference { text: text.to_owned(), ours, theirs, rule }))
    }

    /// Returns texts with every added token of `tokenizer.json`, alone and within text.
    pub fn added_tokens(&self) -> Vec<String> {
        let around = |token: String| [format!("a{token}b"), format!(" {token} {token}\n"), token];
        self.theirs
            .added_tokens()
            .into_iter()
            .flat_map(|(_, token)| around(token.content))
            .collect()
    }

    /// Whether the ids of a text differ, without BOS and EOS.
    ///
    /// # Errors
    /// If `tokenizer.json` fails on the text.
    pub fn differs(&self, text: &str) -> Result<bool, Error> {
        Ok(self.ours.encode(text, WITHOUT_BOS_EOS) != self.theirs.encode(text, WITHOUT_BOS_EOS)?)
    }

    /// Returns a part of the text that differs too and cannot be shortened further.
    fn shortened<'s>(&self, mut text: &'s str) -> Result<&'s str, Error> {
        let mut step = text.len() / 2;
        while step > 0 {
            let inside = |place: usize| text.floor_char_boundary(place);
            let (start, end) = (text.get(inside(step)..), text.get(..inside(text.len() - step)));
            // If `step` ends within a character, start at the next character.
            let start = start.filter(|rest| rest.len() < text.len()).or_else(|| {
                let first = text.chars().next()?;
                text.get(first.len_utf8()..)
            });
            let parts = [end, start].into_iter().flatten();
            let mut shorter = None;
            for part in parts.filter(|part| !part.is_empty() && part.len() < text.len()) {
                if self.differs(part)? {
                    shorter = Some(part);
                    break;
                }
            }
            match shorter {
                Some(part) => {
                    text = part;
                    step = step.min(text.len() / 2).max(usize::from(text.len() > 1));
                }
                None if text.len() > MAX_FINE_LEN => step /= 2,
                None => step = if step > 16 { step / 2 } else { step - 1 },
            }
        }
        Ok(text)
    }

    fn rule(&self, text: &str, ours: &[u32], theirs: &[u32]) -> Result<Rule, Error> {
        let matched = |ids: &[u32], other_ids: &[u32], is_added: &dyn Fn(u32) -> bool| {
            ids.iter()
                .any(|id| !other_ids.contains(id) && is_added(*id) && !self.ours.is_unknown(*id))
        };
        if matched(theirs, ours, &|id| self.theirs.is_added(id))
            || matched(ours, theirs, &|id| self.ours.is_special(id))
        {
            return Ok(Rule::AddedToken);
        }
        let normalized = self.theirs.normalize(text)?;
        if normalized != text && self.ours.encode(&normalized, WITHOUT_BOS_EOS) == theirs {
            return Ok(Rule::Normalizer);
        }
        for other in normalized_forms(text).iter().filter(|other| *other != text) {
            if self.ours.encode(other, WITHOUT_BOS_EOS) == theirs
                || self.theirs.encode(other, WITHOUT_BOS_EOS)? == ours
            {
                return Ok(Rule::Normalizer);
            }
        }
        let first = ours.iter().zip(theirs).find(|(a, b)| a != b);
        if let Some((a, b)) = first
            && let Some(token) = self.theirs.token_text(*b)
            && self
                .ours
                .token_text(*a)
                .is_some_and(|ours| without_marker(ours) == without_marker(token.as_bytes()))
        {
            return Ok(Rule::Vocabulary);
        }
        let words = self.theirs.words(&normalized)?;
        let by_word: Vec<u32> = words
            .iter()
            .filter_map(|(start, end)| normalized.get(*start..*end))
            .flat_map(|word| self.ours.encode(word, WITHOUT_BOS_EOS))
            .collect();
        Ok(if by_word == theirs && words.len() != 1 { Rule::PreTokenizer } else { Rule::Merges })
    }
}

/// Removes the marker of a token that begins or continues a word: for WordPiece, model files mark
/// the former and `tokenizer.json` the latter.
fn without_marker(token: &[u8]) -> &[u8] {
    let begins = token.strip_prefix("\u{2581}".as_bytes());
    begins.or_else(|| token.strip_prefix(b"##")).unwrap_or(token)
}

/// Returns the text in the forms that common normalizers produce.
fn normalized_forms(text: &str) -> [String; 5] {
    let lower = text.to_lowercase();
    let bare = |text: &str| text.nfd().filter(|char| !is_combining_mark(*char)).collect();
    [text.nfc().collect(), text.nfkc().collect(), bare(text), bare(&lower), lower]
}
