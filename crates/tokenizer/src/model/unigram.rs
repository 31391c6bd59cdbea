//! Unigram, the tokenizer of T5: of all ways to cut a text into tokens the one with the largest
//! sum of scores.
//!
//! SentencePiece made it: what is written here of text that is cut in equally good ways, of unknown
//! characters and of white space follows it.

use gguf::Error;
use gguf_models::token::{TokenType, byte_of_token};

use crate::model::Model;
use crate::model::charsmap::{CHARSMAP, Charsmap};
use crate::model::merge::char_len;
use crate::options::{Compat, Options};
use crate::token_table::TokenTable;
use crate::trie::Trie;
use crate::vocabulary::Vocabulary;

/// What stands for a space in tokens: U+2581.
const SPACE: &[u8] = "\u{2581}".as_bytes();

/// How much worse than the worst token an unknown character is.
const UNKNOWN_PENALTY: f32 = 10.0;

/// No token's id.
const NONE: u32 = u32::MAX;

/// The vocabulary as a tree, with scores.
pub(crate) struct Unigram {
    charsmap: Option<Charsmap>,
    spaces: Spaces,
    trie: Trie,
    scores: Vec<f32>,
    lowest: f32,
    highest: f32,
    types: Vec<TokenType>,
    unknown: Option<u32>,
    /// The tokens of all bytes, to write unknown characters with.
    bytes: Option<Box<[u32; 256]>>,
    texts: TokenTable,
    compat: Compat,
}

/// What happens to white space.
struct Spaces {
    /// One is added, before or after the text.
    added: Option<Side>,
    /// Those at the ends go, and of several that follow each other one stays.
    merged: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// The best way to cut the text up to some place.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    /// The last token; `NONE` for an unknown character.
    id: u32,
    /// How long its text is; 0 if nothing ends here.
    len: u32,
}

/// What is known of a place before anything ends there.
const NOTHING: Best = Best { score: 0.0, id: NONE, len: 0 };

impl Unigram {
    /// `t5` and `replit`, whose text keeps its white space.
    ///
    /// # Errors
    /// If scores are missing or not as many as the tokens, the charsmap is damaged, or a token is
    /// absurdly long.
    pub fn read(vocabulary: &Vocabulary<'_>, options: Options) -> Result<Self, Error> {
        let scores = vocabulary.scores()?;
        let of_type = |kind| (0..).zip(&vocabulary.types).filter(move |(_, k)| **k == kind);
        let normal = || of_type(TokenType::Normal).filter_map(|(id, _)| scores.get(id).copied());
        let matched =
            |kind| matches!(kind, TokenType::Normal | TokenType::UserDefined | TokenType::Unused);
        let tokens = (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types));
        let tokens = tokens
            // SentencePiece leaves unused tokens out; llama.cpp takes them too.
            .filter(|(_, (_, kind))| matched(**kind))
            .filter(|(_, (_, kind))| {
                **kind != TokenType::Unused || options.compat == Compat::LlamaCpp
            })
            .map(|(id, (token, _))| (*token, id));
        let charsmap = vocabulary.metadata.array(CHARSMAP).filter(|array| !array.is_empty());
        let after = vocabulary.flag("treat_whitespace_as_suffix", false);
        Ok(Self {
            charsmap: charsmap.map(Charsmap::read).transpose()?,
            spaces: Spaces {
                added: vocabulary.flag("add_space_prefix", false).then_some(if after {
                    Side::After
                } else {
                    Side::Before
                }),
                merged: vocabulary.flag("remove_extra_whitespaces", false),
            },
            trie: Trie::new(tokens)?,
            lowest: normal().reduce(f32::min).unwrap_or_default(),
            highest: normal().reduce(f32::max).unwrap_or_default(),
            types: vocabulary.types.clone(),
            unknown: vocabulary.special_id("unk", Some(2))?,
            bytes: byte_tokens(vocabulary).filter(|_| options.compat == Compat::Own),
            texts: vocabulary.tokens.iter().collect(),
            compat: options.compat,
            scores,
        })
    }

    /// The text as tokens have it. Each character that the charsmap does not replace stays.
    fn normalize(&self, text: &str) -> Vec<u8> {
        let mut normal = Vec::with_capacity(text.len() + text.len() / 4 + SPACE.len());
        let mut parts = Parts { charsmap: self.charsmap.as_ref(), rest: text }.peekable();
        if self.spaces.merged {
            while parts.next_if(|part| *part == b" ").is_some() {}
        }
        if parts.peek().is_none() {
            return normal;
        }
        if self.spaces.added == Some(Side::Before) {
            normal.extend_from_slice(SPACE);
        }
        let mut after_space = self.spaces.merged;
        for part in parts {
            let spaces = part.iter().take_while(|byte| **byte == b' ').count();
            let kept = if after_space { part.get(spaces..).unwrap_or_default() } else { part };
            for byte in kept {
                if *byte == b' ' {
                    normal.extend_from_slice(SPACE);
                } else {
                    normal.push(*byte);
                }
            }
            if self.spaces.merged && !kept.is_empty() {
                after_space = kept.ends_with(b" ");
            }
        }
        // SentencePiece takes away what the text itself has of U+2581 too.
        let is_own = self.compat == Compat::Own;
        while self.spaces.merged && normal.ends_with(SPACE) && (is_own || after_space) {
            normal.truncate(normal.len() - SPACE.len());
            after_space = false;
        }
        if self.spaces.added == Some(Side::After) {
            normal.extend_from_slice(SPACE);
        }
        normal
    }

    /// The best way to cut `text` up to each place in it, from the last one of `best` on and up to
    /// the first that no token reaches across. What comes after has no say in the way to there, so
    /// that memory does not grow with the text.
    fn best(&self, text: &[u8], best: &mut Vec<Best>) {
        let mut place = 0;
        while let Some(rest) = text.get(place..).filter(|rest| !rest.is_empty()) {
            let so_far = best[place].score;
            let char_len = char_len(rest);
            let mut is_known = false;
            let mut offer = |len: usize, id, score: f64| {
                if best.len() <= place + len {
                    best.resize(place + len + 1, NOTHING);
                }
                let end = &mut best[place + len];
                let score = self.rounded(so_far + score);
                if end.len == 0 || score > end.score {
                    *end = Best { score, id, len: len as u32 };
                }
            };
            for (len, id) in self.trie.prefixes(rest) {
                offer(len, id, self.score(id, len));
                is_known |= len == char_len;
            }
            if !is_known {
                offer(char_len, NONE, f64::from(self.lowest - UNKNOWN_PENALTY));
            }
            place += char_len;
            if place + 1 == best.len() {
                return;
            }
        }
    }

    /// Appends the ids of the best way through `text`; `after_unknown`: an unknown character stands
    /// before it.
    fn append(&self, text: &[u8], best: &[Best], after_unknown: bool, out: &mut Vec<u32>) {
        let before = out.len();
        let mut end = text.len();
        // Whether the token on the right is unknown.
        let mut is_unknown = false;
        // From the end on, as each place knows the token before it.
        while let Some(Best { id, len, .. }) = best.get(end).filter(|best| best.len > 0) {
            let start = end.saturating_sub(*len as usize);
            match &self.bytes {
                _ if *id != NONE => out.push(*id),
                Some(bytes) => {
                    let char = text.get(start..end).unwrap_or_default();
                    out.extend(char.iter().rev().map(|byte| bytes[usize::from(*byte)]));
                }
                // Unknown characters that follow each other are one token.
                None if !is_unknown => out.extend(self.unknown),
                None => {}
            }
            is_unknown = *id == NONE;
            end = start;
        }
        if is_unknown && after_unknown && self.bytes.is_none() && self.unknown.is_some() {
            out.pop();
        }
        out.get_mut(before..).unwrap_or_default().reverse();
    }

    /// A token that the user defined wins over all others.
    fn score(&self, id: u32, len: usize) -> f64 {
        let is_defined = self.types.get(id as usize) == Some(&TokenType::UserDefined);
        match self.compat {
            Compat::Own if is_defined => f64::from(len as f32 * self.highest) - 0.1,
            Compat::LlamaCpp if is_defined => 0.0,
            _ => self.scores.get(id as usize).copied().unwrap_or_default().into(),
        }
    }

    /// SentencePiece keeps sums in 32 bits, llama.cpp in 64: in long texts that decides between
    /// ways that are equally good.
    fn rounded(&self, score: f64) -> f64 {
        match self.compat {
            Compat::Own => f64::from(score as f32),
            Compat::LlamaCpp => score,
        }
    }
}

impl Model for Unigram {
    fn encode(&self, text: &str, _at_start: bool, out: &mut Vec<u32>) {
        let text = self.normalize(text);
        let mut text = &text[..];
        let mut best = vec![NOTHING];
        let mut after_unknown = false;
        while !text.is_empty() {
            self.best(text, &mut best);
            let (part, rest) = text.split_at(best.len() - 1);
            self.append(part, &best, after_unknown, out);
            let Best { score, id, .. } = best[part.len()];
            after_unknown = id == NONE;
            text = rest;
            best.clear();
            best.push(Best { score, ..NOTHING });
        }
    }

    fn decode(&self, id: u32, at_start: bool, out: &mut Vec<u8>) {
        let token = self.texts.get(id).unwrap_or_default();
        if self.types.get(id as usize) == Some(&TokenType::Byte)
            && let Some(byte) = byte_of_token(token)
        {
            return out.push(byte);
        }
        let is_added = at_start && self.spaces.added == Some(Side::Before);
        let mut rest = if is_added { token.strip_prefix(SPACE).unwrap_or(token) } else { token };
        while let [first, after @ ..] = rest {
            if let Some(after) = rest.strip_prefix(SPACE) {
                out.push(b' ');
                rest = after;
            } else {
                out.push(*first);
                rest = after;
            }
        }
    }
}

/// Cuts a text into what is replaced at once, and gives the replacements.
struct Parts<'t> {
    charsmap: Option<&'t Charsmap>,
    rest: &'t str,
}

impl<'t> Iterator for Parts<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let text = self.rest;
        let char = text.chars().next()?;
        if let Some((len, replacement)) = self.charsmap.and_then(|map| map.replace(text.as_bytes()))
            // Keys are texts, so that only a forged one ends within a character.
            && let Some(rest) = text.get(len..)
        {
            self.rest = rest;
            return Some(replacement);
        }
        let (char, rest) = text.split_at(char.len_utf8());
        self.rest = rest;
        Some(char.as_bytes())
    }
}

/// The tokens `<0x00>` to `<0xFF>`, if there are all of them.
fn byte_tokens(vocabulary: &Vocabulary<'_>) -> Option<Box<[u32; 256]>> {
    let mut bytes = Box::new([NONE; 256]);
    for (id, (token, kind)) in (0..).zip(vocabulary.tokens.iter().zip(&vocabulary.types)) {
        if *kind == TokenType::Byte
            && let Some(byte) = byte_of_token(token)
        {
            bytes[usize::from(byte)] = id;
        }
    }
    Some(bytes).filter(|bytes| !bytes.contains(&NONE))
}
