//! Special tokens: split off before the model encodes the text; BOS and EOS.

mod llama_cpp;

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, Input, MatchKind, PatternID};
use gguf::Error;
use gguf_models::token::TokenType;
pub(crate) use llama_cpp::EndKeys;

use crate::options::{Compat, TokenizerOptions};
use crate::vocabulary::Vocabulary;

/// A fragment of a text.
pub(crate) enum Fragment<'t> {
    /// Non-empty text for the model.
    Text(&'t str),
    /// A special token.
    Token(u32),
}

/// Finds special tokens in a text.
pub(crate) struct Splitter {
    /// Control, unknown and user-defined tokens.
    all: Matcher,
    /// User-defined tokens, which are parsed in untrusted text too.
    user_defined: Matcher,
    compat: Compat,
}

struct Matcher {
    tokens: Vec<Special>,
    search: Option<AhoCorasick>,
}

struct Special {
    id: u32,
    text: String,
    is_user_defined: bool,
    strip: Strip,
}

/// Longest pattern of the search in bytes. The time to build it grows with the square of the longest pattern, so longer
/// tokens are searched by their beginning.
const MAX_PATTERN: usize = 256;

impl Special {
    /// Returns the pattern of the search.
    fn pattern(&self) -> &[u8] {
        &self.text.as_bytes()[..self.text.len().min(MAX_PATTERN)]
    }
}

/// White space that a token strips on its sides. Files do not state it; it follows from the model's
/// name.
#[derive(Clone, Copy, Default)]
struct Strip {
    left: bool,
    right: bool,
}

impl Splitter {
    pub fn new(vocabulary: &Vocabulary<'_>, options: TokenizerOptions) -> Self {
        use TokenType::{Control, Unknown, UserDefined};
        let types = match options.compat {
            Compat::Original => Cow::Borrowed(&vocabulary.types),
            Compat::LlamaCpp => Cow::Owned(llama_cpp::types(vocabulary)),
        };
        Self {
            all: Matcher::new(vocabulary, options, &types, &[Control, Unknown, UserDefined]),
            user_defined: Matcher::new(vocabulary, options, &types, &[UserDefined]),
            compat: options.compat,
        }
    }

    /// Returns where control tokens can begin in a text.
    pub fn control_starts(&self, text: &str) -> Vec<usize> {
        let Matcher { tokens, search: Some(search) } = &self.all else { return Vec::new() };
        let mut starts = Vec::new();
        let mut at = 0;
        while let Some(found) = search.find(Input::new(text).span(at..text.len())) {
            if !tokens[found.pattern().as_usize()].is_user_defined {
                starts.push(found.start());
            }
            at = found.start() + 1;
        }
        starts
    }

    /// Calls `out` with the fragments of `text` in order.
    pub fn split<'t>(&self, text: &'t str, all: bool, out: &mut dyn FnMut(Fragment<'t>)) {
        let set = if all { &self.all } else { &self.user_defined };
        match &set.search {
            Some(search) if self.compat == Compat::Original => set.leftmost(search, text, out),
            // A quick check first: splitting token by token is slow.
            Some(search) if search.is_match(text) => set.longest_first(text, out),
            _ => emit(text, out),
        }
    }
}

impl Matcher {
    /// Collects the tokens whose type is one of `kinds`.
    fn new(
        vocabulary: &Vocabulary<'_>,
        options: TokenizerOptions,
        types: &[TokenType],
        kinds: &[TokenType],
    ) -> Self {
        let merged = |text: &str| {
            options.compat == Compat::Original
                && vocabulary.model().ok() == Some("llama")
                && is_run_of_spaces(text.as_bytes())
        };
        let mut tokens: Vec<Special> = (0..)
            .zip(vocabulary.tokens.iter().zip(types))
            .filter(|(_, (_, kind))| kinds.contains(kind))
            // A token that is not UTF-8 cannot occur in a text, and the empty token would occur
            // everywhere.
            .filter_map(|(id, (bytes, kind))| Some((id, std::str::from_utf8(bytes).ok()?, *kind)))
            .filter(|(_, text, _)| !text.is_empty())
            .map(|(id, text, kind)| Special {
                id,
                text: if merged(text) { visible(text) } else { text.to_owned() },
                is_user_defined: kind == TokenType::UserDefined,
                strip: strip(vocabulary, text),
            })
            .collect();
        // Longest first.
        tokens.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(Special::pattern));
        // Building fails only on gigabytes of patterns.
        let search = search.ok().filter(|_| !tokens.is_empty());
        Self { tokens, search }
    }

    /// Splits as `tokenizers` does: at the leftmost match, of these the longest.
    fn leftmost<'t>(&self, search: &AhoCorasick, text: &'t str, out: &mut dyn FnMut(Fragment<'t>)) {
        let mut rest = text;
        let mut rest_at = 0;
        let mut at = 0;
        while let Some(found) = search.find(Input::new(text).span(at..text.len())) {
            let start = found.start();
            let Some(token) = self.token_at(&text[start..], found.pattern()) else {
                at = start + 1;
                continue;
            };
            at = start + token.text.len();
            // The match lies within white space that the previous token stripped.
            if start < rest_at {
                continue;
            }
            let (before, after) = rest.split_at(start - rest_at);
            emit(token.strip.trim_before(before, char::is_whitespace), out);
            out(Fragment::Token(token.id));
            rest = token.strip.trim_after(&after[token.text.len()..], char::is_whitespace);
            rest_at = text.len() - rest.len();
        }
        emit(rest, out);
    }

    /// Returns the longest token at the start of a text, where the search found a pattern.
    fn token_at(&self, text: &str, pattern: PatternID) -> Option<&Special> {
        let found = &self.tokens[pattern.as_usize()];
        match found.text.len() <= MAX_PATTERN {
            true => Some(found),
            false => self.tokens.iter().find(|token| text.starts_with(&token.text)),
        }
    }

    /// Splits as llama.cpp does: at all occurrences of each token in turn, longest first.
    fn longest_first<'t>(&self, text: &'t str, out: &mut dyn FnMut(Fragment<'t>)) {
        let mut fragments = vec![Fragment::Text(text)];
        for token in self.tokens.iter().filter(|token| text.contains(&token.text)) {
            let mut split = Vec::with_capacity(fragments.len());
            for fragment in fragments {
                let Fragment::Text(mut text) = fragment else {
                    split.push(fragment);
                    continue;
                };
                while let Some((before, after)) = text.split_once(token.text.as_str()) {
                    emit(token.strip.trim_before(before, is_c_space), &mut |part| split.push(part));
                    split.push(Fragment::Token(token.id));
                    text = token.strip.trim_after(after, is_c_space);
                }
                emit(text, &mut |part| split.push(part));
            }
            fragments = split;
        }
        fragments.into_iter().for_each(out);
    }
}

/// Whether a token is a run of spaces, visible or not, as Gemma's user-defined tokens. Its
/// `tokenizer.json` matches only visible ones in the text and merges the others like any token;
/// llama.cpp matches both, so long runs are encoded differently.
pub(crate) fn is_run_of_spaces(token: &[u8]) -> bool {
    let text = std::str::from_utf8(token).unwrap_or_default();
    text.chars().nth(1).is_some() && text.chars().all(|c| c == ' ' || c == '\u{2581}')
}

/// Returns the text with visible spaces.
fn visible(spaces: &str) -> String {
    spaces.replace(' ', "\u{2581}")
}

fn emit<'t>(text: &'t str, out: &mut dyn FnMut(Fragment<'t>)) {
    if !text.is_empty() {
        out(Fragment::Text(text));
    }
}

/// Whether C's `isspace`, which llama.cpp calls on each byte, accepts a character.
fn is_c_space(char: char) -> bool {
    matches!(char, ' ' | '\t'..='\r')
}

impl Strip {
    fn trim_before(self, text: &str, is_space: fn(char) -> bool) -> &str {
        if self.left { text.trim_end_matches(is_space) } else { text }
    }

    fn trim_after(self, text: &str, is_space: fn(char) -> bool) -> &str {
        if self.right { text.trim_start_matches(is_space) } else { text }
    }
}

/// Returns the strip settings of a token, recognised by model as in llama.cpp.
fn strip(vocabulary: &Vocabulary<'_>, token: &str) -> Strip {
    let value = |key| vocabulary.metadata.str(key).unwrap_or_default();
    let name = value("general.name").to_lowercase();
    let mask = if ["jina-v2-de", "jina-v2-es", "jina-v2-code"].contains(&value(PRE))
        || ["nomic-bert-moe", "jina-bert-v3"].contains(&value("general.architecture"))
    {
        "<mask>"
    } else if name.contains("phi-3") || name.contains("phi3") || is_phi3(vocabulary) {
        let right = !["<unk>", "<s>", "<|endoftext|>"].contains(&token);
        return Strip { left: false, right };
    } else if name.contains("modern-bert") {
        "[MASK]"
    } else {
        return Strip::default();
    };
    Strip { left: token == mask, right: false }
}

/// Whether the model is one of the first Phi-3 models; later ones have other vocabularies.
fn is_phi3(vocabulary: &Vocabulary<'_>) -> bool {
    vocabulary.metadata.architecture() == Some("phi3") && vocabulary.model().ok() == Some("llama")
}

/// Key of the pre-tokenizer's name.
pub(crate) const PRE: &str = "tokenizer.ggml.pre";

/// Returns EOS of files that do not name it, by tokenizer model, as llama.cpp does.
fn default_eos(model: &str) -> Option<u32> {
    match model {
        "llama" => Some(2),
        "gpt2" => Some(11),
        "t5" => Some(1),
        _ => None,
    }
}

/// BOS and EOS tokens that the model requires.
#[derive(Default)]
pub(crate) struct BosEos {
    pub first: Option<u32>,
    pub last: Option<u32>,
}

impl BosEos {
    /// Reads the keys, with the defaults of llama.cpp.
    ///
    /// # Errors
    /// If the file names a token that does not exist.
    pub fn read(vocabulary: &Vocabulary<'_>) -> Result<Self, Error> {
        let pre = vocabulary.metadata.str(PRE).unwrap_or_default();
        let model = vocabulary.model()?;
        let eos = default_eos(model);
        let (first, last) = match model {
            "llama" => (("bos", Some(1), true), ("eos", eos, false)),
            // Older files have BERT's first token under its own name only.
            "bert" => {
                (("bos", vocabulary.special_id("cls", Some(101))?, true), ("sep", Some(102), true))
            }
            "t5" => (("bos", None, false), ("eos", eos, true)),
            "gpt2" => (("bos", Some(11), pre == "tekken"), ("eos", eos, false)),
            _ => (("bos", None, false), ("eos", eos, false)),
        };
        // BERT always adds both, regardless of the flags: converters write one for `eos`, which is
        // the same token as `sep` there.
        let is_bert = vocabulary.model()? == "bert";
        let id = |(role, default, added): (&str, Option<u32>, bool)| {
            let id = vocabulary.special_id(role, default)?;
            // Many files of the first Gemma 4 say false by mistake.
            let added = is_bert
                || vocabulary.flag(&format!("add_{role}_token"), added)
                || (role == "bos" && always_adds_bos(vocabulary, pre));
            Ok::<_, Error>(id.filter(|_| added))
        };
        Ok(Self { first: id(first)?, last: id(last)? })
    }
}

fn always_adds_bos(vocabulary: &Vocabulary<'_>, pre: &str) -> bool {
    vocabulary.model().ok() == Some("gemma4")
        || (vocabulary.model().ok() == Some("gpt2")
            && ["gemma4", "granite-embed-multi-311m"].contains(&pre))
}
