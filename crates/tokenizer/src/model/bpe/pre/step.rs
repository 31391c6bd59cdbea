//! Steps of a pre-tokenizer.

use regex::bytes::Regex;

use super::scanner::Scanner;
use crate::model::classes::{self, LLAMA_CPP};
use crate::options::Compat;

/// A rule of the table.
pub(super) enum SplitRule {
    /// Split before and after each match of a regular expression. It may end in `|\s+(?!\S)|\s+`,
    /// or match runs of spaces by powers of two; no other look-around is supported.
    Isolate(&'static str),
    /// Split before each match.
    Before(&'static str),
    /// Like `Isolate`, and drop the text between the matches.
    Keep(&'static str),
    /// Split digits into groups of three, from the right.
    Groups {
        /// Expression of a digit.
        class: &'static str,
        /// Also if a letter or mark follows.
        before_words: bool,
        /// Also split before the first digit.
        first: bool,
    },
    /// Split before every three ASCII digits, from the right of their run.
    Thousands,
    /// Split off runs of numeric characters in the byte-level alphabet, where each byte is a
    /// Latin-1 character: falcon looks for digits after the byte-level encoding.
    LatinDigits,
}

/// A compiled rule.
pub(super) enum Step {
    Scanner(Scanner),
    Pattern { regex: Regex, space: Space, breaks: bool },
    Before(Regex),
    Keep(Regex),
    Groups { digits: Regex, before_words: bool, first: bool },
    Thousands(Regex),
    LatinDigits,
}

/// Rule for white space that no other part of the expression matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// As the expression matches.
    Plain,
    /// `\s+(?!\S)|\s+`: leave the last character to the next word.
    LastLeft,
    /// Like `LastLeft`, in parts whose lengths are powers of two, up to 512.
    PowersOfTwo,
}

impl Step {
    pub fn new(split: &SplitRule, compat: Compat) -> Self {
        match *split {
            SplitRule::Isolate(pattern) => match Scanner::for_pattern(pattern, compat) {
                Some(scanner) => Self::Scanner(scanner),
                None => Self::pattern(pattern, compat),
            },
            SplitRule::Before(pattern) => Self::Before(regex(pattern, compat)),
            SplitRule::Keep(pattern) => Self::Keep(regex(pattern, compat)),
            SplitRule::Groups { class, before_words, first } => {
                let digits = regex(&format!("{class}+"), compat);
                Self::Groups { digits, before_words, first }
            }
            SplitRule::Thousands => Self::Thousands(regex("[0-9]{3,}", compat)),
            SplitRule::LatinDigits => Self::LatinDigits,
        }
    }

    pub fn pattern(pattern: &str, compat: Compat) -> Self {
        let last_left = pattern.strip_suffix(r"|\s+(?!\S)|\s+");
        let powers = pattern.split_once(r"|\s{512}(?!\S)").map(|(before, _)| before);
        let (pattern, space) = match (last_left, powers) {
            (Some(rest), _) => (format!(r"{rest}|\s+"), Space::LastLeft),
            (_, Some(rest)) => (format!(r"{rest}|\s{{1,513}}"), Space::PowersOfTwo),
            _ => (pattern.to_owned(), Space::Plain),
        };
        Self::Pattern {
            regex: regex(&pattern, compat),
            space,
            breaks: pattern.contains(r"|\s*[\r\n]"),
        }
    }

    /// Calls `out` with the range of each part.
    pub fn split(&self, text: &[u8], out: &mut dyn FnMut(usize, usize)) {
        match self {
            Self::Scanner(scanner) => scanner.split(text, out),
            Self::Pattern { regex, space, breaks } => isolate(regex, *space, *breaks, text, out),
            Self::Before(regex) => {
                let starts = regex.find_iter(text).map(|found| found.start());
                split_at(text.len(), starts, out);
            }
            Self::Keep(regex) => {
                regex.find_iter(text).for_each(|found| out(found.start(), found.end()));
            }
            Self::Groups { digits, before_words, first } => {
                groups(digits, *before_words, *first, text, out);
            }
            Self::Thousands(digits) => thousands(digits, text, out),
            Self::LatinDigits => latin_digits(text, out),
        }
    }
}

/// Compiles an expression. All expressions are constants, and a test compiles them.
fn regex(pattern: &str, compat: Compat) -> Regex {
    let valid = "a valid expression";
    match compat {
        Compat::Original => Regex::new(pattern).expect(valid),
        // llama.cpp's classes come from its own tables.
        Compat::LlamaCpp => {
            let class = regex::Regex::new(r"\\p\{\w+\}").expect(valid);
            let known = class.replace_all(pattern, |found: &regex::Captures<'_>| {
                format!("[{}&&{LLAMA_CPP}]", &found[0])
            });
            Regex::new(&known).expect(valid)
        }
    }
}

/// Calls `out` with the parts between the split positions, which are in order.
fn split_at(len: usize, positions: impl Iterator<Item = usize>, out: &mut dyn FnMut(usize, usize)) {
    let mut start = 0;
    for end in positions.chain([len]).filter(|end| *end <= len) {
        if start < end {
            out(start, end);
            start = end;
        }
    }
}

/// Splits before and after each match. `breaks` means that the expression has `\s*[\r\n]` before
/// its last alternative, so that the white space there contains no line break.
///
/// No expression matches the empty text.
fn isolate(
    regex: &Regex,
    space: Space,
    breaks: bool,
    text: &[u8],
    out: &mut dyn FnMut(usize, usize),
) {
    let mut done = 0;
    while let Some(found) = regex.find_at(text, done) {
        let (start, mut end) = (found.start(), found.end());
        let is_space = space != Space::Plain
            && !(breaks && matches!(text[end - 1], b'\n' | b'\r'))
            && is_whitespace(found.as_bytes());
        if is_space {
            end = start + space.first_part(found.as_bytes(), end == text.len());
        }
        if done < start {
            out(done, start);
        }
        out(start, end);
        done = end;
    }
    if done < text.len() {
        out(done, text.len());
    }
}

fn is_whitespace(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(char::is_whitespace))
}

impl Space {
    /// Returns the number of bytes of white space in the first part; `at_end` if no text follows.
    fn first_part(self, is_space: &[u8], at_end: bool) -> usize {
        let text = std::str::from_utf8(is_space).unwrap_or_default();
        let total = text.chars().count();
        let free = if at_end { total } else { total - 1 };
        let count = match self {
            Self::Plain => total,
            Self::LastLeft => free,
            Self::PowersOfTwo => 1 << free.clamp(1, 512).ilog2(),
        };
        text.char_indices().nth(count.max(1)).map_or(is_space.len(), |(i, _)| i)
    }
}

fn groups(
    digits: &Regex,
    before_words: bool,
    first: bool,
    text: &[u8],
    out: &mut dyn FnMut(usize, usize),
) {
    let mut positions = Vec::new();
    for run in digits.find_iter(text) {
        if !before_words && continues_word(&text[run.end()..]) {
            continue;
        }
        if first {
            positions.push(run.start());
        }
        let run_text = std::str::from_utf8(run.as_bytes()).unwrap_or_default();
        let count = run_text.chars().count();
        let inside = run_text
            .char_indices()
            .enumerate()
            .filter(|(i, _)| *i > 0 && (count - i).is_multiple_of(3));
        positions.extend(inside.map(|(_, (at, _))| run.start() + at));
        positions.push(run.end());
    }
    split_at(text.len(), positions.into_iter(), out);
}

fn thousands(digits: &Regex, text: &[u8], out: &mut dyn FnMut(usize, usize)) {
    let positions = digits.find_iter(text).flat_map(|run| {
        let (start, end) = (run.start(), run.end());
        (start..end).filter(move |at| (end - at).is_multiple_of(3))
    });
    split_at(text.len(), positions, out);
}

/// Whether the text continues a word, so that `\b` does not match before it.
fn continues_word(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.chars().next().is_some_and(|c| classes::classes_of(c) & classes::WORD != 0)
}

fn latin_digits(text: &[u8], out: &mut dyn FnMut(usize, usize)) {
    let is_digit = |byte: u8| {
        // ASCII digits, superscripts and fractions.
        matches!(byte, b'0'..=b'9' | 0xb2 | 0xb3 | 0xb9 | 0xbc..=0xbe)
    };
    let changes = text.windows(2).enumerate();
    let changes = changes.filter(|(_, pair)| is_digit(pair[0]) != is_digit(pair[1]));
    split_at(text.len(), changes.map(|(i, _)| i + 1), out);
}
