//! One step of a pre-tokenizer.

use regex::bytes::Regex;

use super::machine::Machine;
use crate::model::classes::{self, LLAMA_CPP};
use crate::options::Compat;

/// A step as the table has it.
pub(super) enum Cut {
    /// Before and behind each match of a regular expression. It may end in `|\s+(?!\S)|\s+`, or
    /// have runs of spaces by powers of two; no other look-around is known.
    Isolate(&'static str),
    /// Before each match.
    Before(&'static str),
    /// As `Isolate`, and what is between the matches is dropped.
    Keep(&'static str),
    /// Digits in groups of three, from the right.
    Groups {
        /// The digits.
        class: &'static str,
        /// Also where a letter or mark follows.
        before_words: bool,
        /// Also before the first digit.
        first: bool,
    },
    /// Before each three ASCII digits, from the right of their run.
    Thousands,
    /// Runs of numeric characters, once each byte is a character of Latin-1: that is how bytes are
    /// written, and falcon looks for digits after.
    LatinDigits,
}

/// A step that is ready to be done.
pub(super) enum Step {
    Machine(Machine),
    Pattern { regex: Regex, space: Space, breaks: bool },
    Before(Regex),
    Keep(Regex),
    Groups { digits: Regex, before_words: bool, first: bool },
    Thousands(Regex),
    LatinDigits,
}

/// What is done to white space that no other part of the expression matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// What the expression says.
    Plain,
    /// `\s+(?!\S)|\s+`: the last one is left to the word behind.
    LastLeft,
    /// The same, in parts whose lengths are powers of two, up to 512.
    PowersOfTwo,
}

impl Step {
    pub fn new(cut: &Cut, compat: Compat) -> Self {
        match *cut {
            Cut::Isolate(pattern) => match Machine::of(pattern, compat) {
                Some(machine) => Self::Machine(machine),
                None => Self::pattern(pattern, compat),
            },
            Cut::Before(pattern) => Self::Before(regex(pattern, compat)),
            Cut::Keep(pattern) => Self::Keep(regex(pattern, compat)),
            Cut::Groups { class, before_words, first } => {
                let digits = regex(&format!("{class}+"), compat);
                Self::Groups { digits, before_words, first }
            }
            Cut::Thousands => Self::Thousands(regex("[0-9]{3,}", compat)),
            Cut::LatinDigits => Self::LatinDigits,
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

    /// Hands out the beginning and end of each part.
    pub fn cut(&self, text: &[u8], out: &mut dyn FnMut(usize, usize)) {
        match self {
            Self::Machine(machine) => machine.cut(text, out),
            Self::Pattern { regex, space, breaks } => isolate(regex, *space, *breaks, text, out),
            Self::Before(regex) => {
                let starts = regex.find_iter(text).map(|found| found.start());
                cut_at(text.len(), starts, out);
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

/// The expressions are constants, all compiled in a test.
fn regex(pattern: &str, compat: Compat) -> Regex {
    let valid = "a valid expression";
    match compat {
        Compat::Own => Regex::new(pattern).expect(valid),
        // Its classes are those of its tables.
        Compat::LlamaCpp => {
            let class = regex::Regex::new(r"\\p\{\w+\}").expect(valid);
            let known = class.replace_all(pattern, |found: &regex::Captures<'_>| {
                format!("[{}&&{LLAMA_CPP}]", &found[0])
            });
            Regex::new(&known).expect(valid)
        }
    }
}

/// Parts that end at the cuts, which come in order.
fn cut_at(len: usize, cuts: impl Iterator<Item = usize>, out: &mut dyn FnMut(usize, usize)) {
    let mut start = 0;
    for end in cuts.chain([len]).filter(|end| *end <= len) {
        if start < end {
            out(start, end);
            start = end;
        }
    }
}

/// `breaks`: the expression has `\s*[\r\n]` in front of the one for white space, which then never
/// sees a line break.
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
        let white = space != Space::Plain
            && !(breaks && matches!(text[end - 1], b'\n' | b'\r'))
            && is_white(found.as_bytes());
        if white {
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

fn is_white(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(char::is_whitespace))
}

impl Space {
    /// How many bytes of this white space are one part; `at_end` if nothing follows.
    fn first_part(self, white: &[u8], at_end: bool) -> usize {
        let text = std::str::from_utf8(white).unwrap_or_default();
        let total = text.chars().count();
        let free = if at_end { total } else { total - 1 };
        let count = match self {
            Self::Plain => total,
            Self::LastLeft => free,
            Self::PowersOfTwo => 1 << free.clamp(1, 512).ilog2(),
        };
        text.char_indices().nth(count.max(1)).map_or(white.len(), |(i, _)| i)
    }
}

fn groups(
    digits: &Regex,
    before_words: bool,
    first: bool,
    text: &[u8],
    out: &mut dyn FnMut(usize, usize),
) {
    let mut cuts = Vec::new();
    for run in digits.find_iter(text) {
        if !before_words && is_word_behind(&text[run.end()..]) {
            continue;
        }
        if first {
            cuts.push(run.start());
        }
        let run_text = std::str::from_utf8(run.as_bytes()).unwrap_or_default();
        let count = run_text.chars().count();
        let inside = run_text
            .char_indices()
            .enumerate()
            .filter(|(i, _)| *i > 0 && (count - i).is_multiple_of(3));
        cuts.extend(inside.map(|(_, (at, _))| run.start() + at));
        cuts.push(run.end());
    }
    cut_at(text.len(), cuts.into_iter(), out);
}

fn thousands(digits: &Regex, text: &[u8], out: &mut dyn FnMut(usize, usize)) {
    let cuts = digits.find_iter(text).flat_map(|run| {
        let (start, end) = (run.start(), run.end());
        (start..end).filter(move |at| (end - at).is_multiple_of(3))
    });
    cut_at(text.len(), cuts, out);
}

/// True if what follows goes on a word, so that `\b` does not match.
fn is_word_behind(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.chars().next().is_some_and(|c| classes::of(c) & classes::WORD != 0)
}

fn latin_digits(text: &[u8], out: &mut dyn FnMut(usize, usize)) {
    let is_digit = |byte: u8| {
        // Superscripts and fractions.
        matches!(byte, b'0'..=b'9' | 0xb2 | 0xb3 | 0xb9 | 0xbc..=0xbe)
    };
    let changes = text.windows(2).enumerate();
    let changes = changes.filter(|(_, pair)| is_digit(pair[0]) != is_digit(pair[1]));
    cut_at(text.len(), changes.map(|(i, _)| i + 1), out);
}
