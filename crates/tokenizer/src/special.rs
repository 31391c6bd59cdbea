//! Special tokens: cut out of the text before anything else, and added at its ends.

mod llama_cpp;

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use gguf::Error;
use gguf_models::token::TokenType;

use crate::options::{Compat, Options};
use crate::vocabulary::Vocabulary;

/// A part of a text.
pub(crate) enum Fragment<'t> {
    /// Text for the model; not empty.
    Text(&'t str),
    /// A special token.
    Token(u32),
}

/// Finds the texts of special tokens.
pub(crate) struct Splitter {
    /// Control, unknown and user-defined ones.
    all: Set,
    /// User-defined ones: cut out even where text is not trusted.
    user_defined: Set,
    compat: Compat,
}

struct Set {
    tokens: Vec<Special>,
    search: Option<AhoCorasick>,
}

struct Special {
    id: u32,
    text: String,
    strips: Strips,
}

/// Whether a token swallows the white space on its sides. Files do not say; names of models do.
#[derive(Clone, Copy, Default)]
struct Strips {
    left: bool,
    right: bool,
}

impl Splitter {
    pub fn new(vocabulary: &Vocabulary<'_>, options: Options) -> Self {
        use TokenType::{Control, Unknown, UserDefined};
        let types = match options.compat {
            Compat::Own => Cow::Borrowed(&vocabulary.types),
            Compat::LlamaCpp => Cow::Owned(llama_cpp::types(vocabulary)),
        };
        Self {
            all: Set::new(vocabulary, options, &types, &[Control, Unknown, UserDefined]),
            user_defined: Set::new(vocabulary, options, &types, &[UserDefined]),
            compat: options.compat,
        }
    }

    /// Hands out the fragments of `text` in order.
    pub fn split<'t>(&self, text: &'t str, all: bool, out: &mut dyn FnMut(Fragment<'t>)) {
        let set = if all { &self.all } else { &self.user_defined };
        match &set.search {
            Some(search) if self.compat == Compat::Own => set.leftmost(search, text, out),
            // In turn over the whole text is only worth it if there is something to find.
            Some(search) if search.is_match(text) => set.longest_first(text, out),
            _ => emit(text, out),
        }
    }
}

impl Set {
    /// The tokens whose type, of `types`, is one of `kinds`.
    fn new(
        vocabulary: &Vocabulary<'_>,
        options: Options,
        types: &[TokenType],
        kinds: &[TokenType],
    ) -> Self {
        let merged = |text: &str| {
            options.compat == Compat::Own
                && vocabulary.model().ok() == Some("llama")
                && is_run_of_spaces(text.as_bytes())
        };
        let mut tokens: Vec<Special> = (0..)
            .zip(vocabulary.tokens.iter().zip(types))
            .filter(|(_, (_, kind))| kinds.contains(kind))
            // Text is UTF-8: what is not cannot occur in it, and the empty text is everywhere.
            .filter_map(|(id, (bytes, _))| Some((id, std::str::from_utf8(bytes).ok()?)))
            .filter(|(_, text)| !text.is_empty())
            .map(|(id, text)| {
                let spelled = if merged(text) { visible(text) } else { text.to_owned() };
                Special { id, text: spelled, strips: strips(vocabulary, text) }
            })
            .collect();
        // The longest first.
        tokens.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|token| &token.text));
        // It only fails on gigabytes of patterns.
        let search = search.ok().filter(|_| !tokens.is_empty());
        Self { tokens, search }
    }

    /// As `tokenizers` does: what begins first is cut out, of these the longest.
    fn leftmost<'t>(&self, search: &AhoCorasick, text: &'t str, out: &mut dyn FnMut(Fragment<'t>)) {
        let mut rest = text;
        let mut rest_at = 0;
        for found in search.find_iter(text) {
            // Within white space that the one before swallowed.
            if found.start() < rest_at {
                continue;
            }
            let token = &self.tokens[found.pattern().as_usize()];
            let (before, after) = rest.split_at(found.start() - rest_at);
            emit(token.strips.trim_before(before, char::is_whitespace), out);
            out(Fragment::Token(token.id));
            rest = token.strips.trim_after(&after[token.text.len()..], char::is_whitespace);
            rest_at = text.len() - rest.len();
        }
        emit(rest, out);
    }

    /// As llama.cpp does: each token in turn, the longest first, is cut out everywhere.
    fn longest_first<'t>(&self, text: &'t str, out: &mut dyn FnMut(Fragment<'t>)) {
        let mut fragments = vec![Fragment::Text(text)];
        for token in self.tokens.iter().filter(|token| text.contains(&token.text)) {
            let mut cut = Vec::with_capacity(fragments.len());
            for fragment in fragments {
                let Fragment::Text(mut text) = fragment else {
                    cut.push(fragment);
                    continue;
                };
                while let Some((before, after)) = text.split_once(token.text.as_str()) {
                    emit(token.strips.trim_before(before, is_c_space), &mut |part| cut.push(part));
                    cut.push(Fragment::Token(token.id));
                    text = token.strips.trim_after(after, is_c_space);
                }
                emit(text, &mut |part| cut.push(part));
            }
            fragments = cut;
        }
        fragments.into_iter().for_each(out);
    }
}

/// True for the text of Gemma's user-defined tokens of several spaces, visible or not. Its
/// `tokenizer.json` cuts only visible ones out of the text, and gets at the others by merges, like
/// any other token; llama.cpp cuts them out: long runs come out differently.
pub(crate) fn is_run_of_spaces(token: &[u8]) -> bool {
    let text = std::str::from_utf8(token).unwrap_or_default();
    text.chars().nth(1).is_some() && text.chars().all(|c| c == ' ' || c == '\u{2581}')
}

/// The same spaces, visible.
fn visible(spaces: &str) -> String {
    spaces.replace(' ', "\u{2581}")
}

fn emit<'t>(text: &'t str, out: &mut dyn FnMut(Fragment<'t>)) {
    if !text.is_empty() {
        out(Fragment::Text(text));
    }
}

/// White space to C's `isspace`, which llama.cpp asks about each byte.
fn is_c_space(char: char) -> bool {
    matches!(char, ' ' | '\t'..='\r')
}

impl Strips {
    fn trim_before(self, text: &str, is_space: fn(char) -> bool) -> &str {
        if self.left { text.trim_end_matches(is_space) } else { text }
    }

    fn trim_after(self, text: &str, is_space: fn(char) -> bool) -> &str {
        if self.right { text.trim_start_matches(is_space) } else { text }
    }
}

/// The models whose tokenizers have such tokens, as llama.cpp recognises them.
fn strips(vocabulary: &Vocabulary<'_>, token: &str) -> Strips {
    let value = |key| vocabulary.metadata.str(key).unwrap_or_default();
    let name = value("general.name").to_lowercase();
    let mask = if ["jina-v2-de", "jina-v2-es", "jina-v2-code"].contains(&value(PRE))
        || ["nomic-bert-moe", "jina-bert-v3"].contains(&value("general.architecture"))
    {
        "<mask>"
    } else if name.contains("phi-3") || name.contains("phi3") || is_phi3(vocabulary) {
        let right = !["<unk>", "<s>", "<|endoftext|>"].contains(&token);
        return Strips { left: false, right };
    } else if name.contains("modern-bert") {
        "[MASK]"
    } else {
        return Strips::default();
    };
    Strips { left: token == mask, right: false }
}

/// The first models of this architecture; later ones have other vocabularies.
fn is_phi3(vocabulary: &Vocabulary<'_>) -> bool {
    vocabulary.metadata.architecture() == Some("phi3") && vocabulary.model().ok() == Some("llama")
}

/// Key of the name of the pre-tokenizer.
pub(crate) const PRE: &str = "tokenizer.ggml.pre";

/// What a model wants at the ends of every text.
#[derive(Default)]
pub(crate) struct BosEos {
    pub first: Option<u32>,
    pub last: Option<u32>,
}

impl BosEos {
    /// Where the file is silent, the defaults of llama.cpp hold.
    ///
    /// # Errors
    /// If the file names a token that does not exist.
    pub fn read(vocabulary: &Vocabulary<'_>) -> Result<Self, Error> {
        let pre = vocabulary.metadata.str(PRE).unwrap_or_default();
        let (first, last) = match vocabulary.model()? {
            "llama" => (("bos", Some(1), true), ("eos", Some(2), false)),
            // Older files have the first token of BERT under its own name only.
            "bert" => {
                (("bos", vocabulary.special_id("cls", Some(101))?, true), ("sep", Some(102), true))
            }
            "t5" => (("bos", None, false), ("eos", Some(1), true)),
            "gpt2" => (("bos", Some(11), pre == "tekken"), ("eos", Some(11), false)),
            _ => (("bos", None, false), ("eos", None, false)),
        };
        // A text of BERT has both, whatever the file says: converters write what they find about
        // `eos`, which for them is the same token as `sep`.
        let is_bert = vocabulary.model()? == "bert";
        let id = |(role, default, added): (&str, Option<u32>, bool)| {
            let id = vocabulary.special_id(role, default)?;
            // Of the first Gemma 4 files many say false, and none means it.
            let added = is_bert
                || vocabulary.flag(&format!("add_{role}_token"), added)
                || (role == "bos" && starts_always(vocabulary, pre));
            Ok::<_, Error>(id.filter(|_| added))
        };
        Ok(Self { first: id(first)?, last: id(last)? })
    }
}

fn starts_always(vocabulary: &Vocabulary<'_>, pre: &str) -> bool {
    vocabulary.model().ok() == Some("gemma4")
        || (vocabulary.model().ok() == Some("gpt2")
            && ["gemma4", "granite-embed-multi-311m"].contains(&pre))
}
