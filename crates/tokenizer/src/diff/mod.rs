//! Where two tokenizers of one model differ, and by which rule.

mod corpus;

use std::fmt;

pub use corpus::CORPUS;
use gguf::Error;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::huggingface::HuggingFace;
use crate::options::Encode;
use crate::tokenizer::Tokenizer;

/// A text that two tokenizers make different ids of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The text, as short as it can be to differ.
    pub text: String,
    /// The ids of the model file.
    pub ours: Vec<u32>,
    /// The ids of `tokenizer.json`.
    pub theirs: Vec<u32>,
    /// What is different in the tokenizers, as far as it can be told from outside.
    pub rule: Rule,
}

/// A part of a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// Tokens at the ends of every text.
    Ends,
    /// Tokens that are found in the text before anything else.
    AddedToken,
    /// What is replaced before the text is cut.
    Normalizer,
    /// The numbers of tokens.
    Vocabulary,
    /// Where text is cut into words.
    PreTokenizer,
    /// What tokens a word is made of.
    Merges,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ends => "tokens added at the ends",
            Self::AddedToken => "added token: only one of them cuts it out of the text",
            Self::Normalizer => "normalizer: only one of them rewrites the text so",
            Self::Vocabulary => "vocabulary: the token has another id",
            Self::PreTokenizer => "pre-tokenizer: the text is cut into other words",
            Self::Merges => "merges or scores: the word is made of other tokens",
        })
    }
}

/// Texts without the tokens at their ends.
const BARE: Encode = Encode { add_special: false, parse_special: true };

/// Beyond this many bytes a text is not shortened letter by letter.
const SHORT: usize = 256;

/// Compares what the tokenizer of a model file and a `tokenizer.json` make of texts.
pub struct TokenizerDiff<'t> {
    /// The one of the model file.
    pub ours: &'t Tokenizer,
    /// The one to compare with.
    pub theirs: &'t HuggingFace,
}

impl TokenizerDiff<'_> {
    /// The difference at the ends of texts, if there is one: it would be the same for each text.
    ///
    /// # Errors
    /// If `tokenizer.json` does not work on a simple text.
    pub fn ends(&self) -> Result<Option<Difference>, Error> {
        let text = "a";
        let difference = |how| -> Result<_, Error> {
            let (ours, theirs) = (self.ours.encode(text, how), self.theirs.encode(text, how)?);
            Ok((ours != theirs).then_some((ours, theirs)))
        };
        let at_ends = difference(Encode { add_special: true, ..BARE })?;
        Ok(at_ends.filter(|_| difference(BARE).is_ok_and(|bare| bare.is_none())).map(
            |(ours, theirs)| Difference { text: text.to_owned(), ours, theirs, rule: Rule::Ends },
        ))
    }

    /// The difference in a text, if there is one, without what is added at its ends.
    ///
    /// # Errors
    /// If `tokenizer.json` does not work on the text.
    pub fn text(&self, text: &str) -> Result<Option<Difference>, Error> {
        if !self.differs(text)? {
            return Ok(None);
        }
        let text = self.shortened(text)?;
        let (ours, theirs) = (self.ours.encode(text, BARE), self.theirs.encode(text, BARE)?);
        let rule = self.rule(text, &ours, &theirs)?;
        Ok(Some(Difference { text: text.to_owned(), ours, theirs, rule }))
    }

    /// Texts with every token that was added to `tokenizer.json`, alone and within text.
    pub fn added_tokens(&self) -> Vec<String> {
        let around = |token: String| [format!("a{token}b"), format!(" {token} {token}\n"), token];
        self.theirs.added_tokens().into_iter().flat_map(around).collect()
    }

    /// Whether the ids of a text differ, without what is added at its ends.
    ///
    /// # Errors
    /// If `tokenizer.json` does not work on the text.
    pub fn differs(&self, text: &str) -> Result<bool, Error> {
        Ok(self.ours.encode(text, BARE) != self.theirs.encode(text, BARE)?)
    }

    /// A part of the text that differs too, from which nothing can be taken away.
    fn shortened<'s>(&self, mut text: &'s str) -> Result<&'s str, Error> {
        let mut step = text.len() / 2;
        while step > 0 {
            let inside = |place: usize| text.floor_char_boundary(place);
            let (start, end) = (text.get(inside(step)..), text.get(..inside(text.len() - step)));
            // The start of the next character, where `step` ends within one.
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
                None if text.len() > SHORT => step /= 2,
                None => step = if step > 16 { step / 2 } else { step - 1 },
            }
        }
        Ok(text)
    }

    fn rule(&self, text: &str, ours: &[u32], theirs: &[u32]) -> Result<Rule, Error> {
        let cut_out = |ids: &[u32], others: &[u32], is_added: &dyn Fn(u32) -> bool| {
            ids.iter().any(|id| !others.contains(id) && is_added(*id) && !self.ours.is_unknown(*id))
        };
        if cut_out(theirs, ours, &|id| self.theirs.is_added(id))
            || cut_out(ours, theirs, &|id| self.ours.is_special(id))
        {
            return Ok(Rule::AddedToken);
        }
        let normalized = self.theirs.normalize(text)?;
        if normalized != text && self.ours.encode(&normalized, BARE) == theirs {
            return Ok(Rule::Normalizer);
        }
        for other in rewritten(text).iter().filter(|other| *other != text) {
            if self.ours.encode(other, BARE) == theirs || self.theirs.encode(other, BARE)? == ours {
                return Ok(Rule::Normalizer);
            }
        }
        let first = ours.iter().zip(theirs).find(|(a, b)| a != b);
        if let Some((a, b)) = first
            && let Some(token) = self.theirs.token_text(*b)
            && self
                .ours
                .token_text(*a)
                .is_some_and(|ours| unmarked(ours) == unmarked(token.as_bytes()))
        {
            return Ok(Rule::Vocabulary);
        }
        let words = self.theirs.words(&normalized)?;
        let by_word: Vec<u32> = words
            .iter()
            .filter_map(|(start, end)| normalized.get(*start..*end))
            .flat_map(|word| self.ours.encode(word, BARE))
            .collect();
        Ok(if by_word == theirs && words.len() != 1 { Rule::PreTokenizer } else { Rule::Merges })
    }
}

/// The text of a token without what marks where words begin or go on: of WordPiece, model files
/// mark the one and `tokenizer.json` the other.
fn unmarked(token: &[u8]) -> &[u8] {
    let begins = token.strip_prefix("\u{2581}".as_bytes());
    begins.or_else(|| token.strip_prefix(b"##")).unwrap_or(token)
}

/// The text as the usual normalizers have it.
fn rewritten(text: &str) -> [String; 5] {
    let lower = text.to_lowercase();
    let bare = |text: &str| text.nfd().filter(|char| !is_combining_mark(*char)).collect();
    [text.nfc().collect(), text.nfkc().collect(), bare(text), bare(&lower), lower]
}
