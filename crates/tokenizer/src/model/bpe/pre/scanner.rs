//! Hand-written scanners for the common pre-tokenizers.
//!
//! Each splits exactly as its regular expression does (tested on random text), several times as
//! fast. There are three shapes: GPT-2, cl100k and o200k.

use gguf_models::pre_tokenizer::{
    CL100K, CL100K_DIGITS, CL100K_MARKS, CL100K_RUNS, GPT2, O200K, O200K_DIGITS, TEKKEN, UFAKZEKA,
};

use crate::model::classes::{self, LETTER, LOWER, MARK, NUMBER, SPACE, UPPER};
use crate::options::Compat;

/// Splits text as one regular expression does.
pub(super) struct Scanner {
    shape: Shape,
    classes: &'static [u8],
}

#[derive(Clone, Copy)]
enum Shape {
    Gpt2,
    Cl100k {
        contractions: bool,
        /// Character classes of words.
        letters: u8,
        /// Maximum number of consecutive digits.
        digits: usize,
    },
    O200k {
        contractions: bool,
        digits: usize,
    },
}

impl Scanner {
    /// Returns the scanner for an expression, if there is one.
    pub fn for_pattern(pattern: &str, compat: Compat) -> Option<Self> {
        let cl100k =
            |contractions, letters, digits| Shape::Cl100k { contractions, letters, digits };
        let o200k = |contractions, digits| Shape::O200k { contractions, digits };
        let shape = match pattern {
            GPT2 => Shape::Gpt2,
            CL100K => cl100k(true, LETTER, 3),
            CL100K_DIGITS => cl100k(true, LETTER, 1),
            CL100K_RUNS => cl100k(true, LETTER, usize::MAX),
            CL100K_MARKS => cl100k(true, LETTER | MARK, 1),
            UFAKZEKA => cl100k(false, LETTER, 1),
            O200K => o200k(true, 3),
            O200K_DIGITS => o200k(true, 1),
            TEKKEN => o200k(false, 1),
            _ => return None,
        };
        Some(Self { shape, classes: classes::table(compat) })
    }

    /// Calls `out` with the range of each match; the matches cover the text.
    pub fn split(&self, text: &[u8], out: &mut dyn FnMut(usize, usize)) {
        match self.shape {
            Shape::Gpt2 => self.each(text, out, |start| self.gpt2(text, start)),
            Shape::Cl100k { contractions, letters, digits } => self
                .each(text, out, |start| self.cl100k(text, start, contractions, letters, digits)),
            Shape::O200k { contractions, digits } => {
                self.each(text, out, |start| self.o200k(text, start, contractions, digits))
            }
        }
    }

    fn each(
        &self,
        text: &[u8],
        out: &mut dyn FnMut(usize, usize),
        end_of_match: impl Fn(usize) -> usize,
    ) {
        let mut start = 0;
        while start < text.len() {
            let end = end_of_match(start);
            out(start, end);
            start = end;
        }
    }

    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    fn gpt2(&self, text: &[u8], start: usize) -> usize {
        if text[start] == b'\''
            && let Some(end) = contraction(text, start, false)
        {
            return end;
        }
        let after_space = start + usize::from(text[start] == b' ');
        let Some((class, _)) = self.at(text, after_space) else { return after_space };
        if class & SPACE != 0 {
            return self.white(text, start, false);
        }
        match class & (LETTER | NUMBER) {
            0 => self.none_of(text, after_space, SPACE | LETTER | NUMBER),
            same => self.run(text, after_space, same),
        }
    }

    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*`
    /// and white space.
    #[inline]
    fn cl100k(
        &self,
        text: &[u8],
        start: usize,
        contractions: bool,
        letters: u8,
        digits: usize,
    ) -> usize {
        let byte = text[start];
        if byte == b'\''
            && contractions
            && let Some(end) = contraction(text, start, true)
        {
            return end;
        }
        let Some((class, len)) = self.at(text, start) else { return text.len() };
        if class & letters != 0 {
            return self.run(text, start, letters);
        }
        if class & NUMBER != 0 {
            return self.at_most(text, start, NUMBER, digits);
        }
        let next = self.at(text, start + len).map_or(0, |(class, _)| class);
        if next & letters != 0 && !is_line_break(byte) {
            return self.run(text, start + len, letters);
        }
        let symbols = if byte == b' ' { start + 1 } else { start };
        let end = self.none_of(text, symbols, SPACE | NUMBER | letters);
        if end > symbols {
            return while_byte(text, end, is_line_break);
        }
        self.white(text, start, true)
    }

    /// `[^\r\n\p{L}\p{N}]?U*l+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`, then the same expression with `U+l*`,
    /// then `\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` and white space.
    fn o200k(&self, text: &[u8], start: usize, contractions: bool, digits: usize) -> usize {
        let byte = text[start];
        let Some((class, len)) = self.at(text, start) else { return text.len() };
        if class & NUMBER != 0 {
            return self.at_most(text, start, NUMBER, digits);
        }
        // A mark can be the prefix character or a part of the word.
        let after = if class & LETTER == 0 && !is_line_break(byte) {
            self.cased(text, start + len)
        } else {
            Cased::default()
        };
        let from_here =
            if class & (UPPER | LOWER) != 0 { self.cased(text, start) } else { Cased::default() };
        let ends = [after.with_lower, from_here.with_lower, after.with_upper, from_here.with_upper];
        if let Some(end) = ends.into_iter().flatten().next() {
            let contracted = contractions.then(|| contraction(text, end, true)).flatten();
            return contracted.unwrap_or(end);
        }
        let symbols = if byte == b' ' { start + 1 } else { start };
        let end = self.none_of(text, symbols, SPACE | LETTER | NUMBER);
        if end > symbols {
            return while_byte(text, end, |byte| is_line_break(byte) || byte == b'/');
        }
        self.white(text, start, true)
    }

    /// Returns the ends of `U*l+` and `U+l*` that begin at `start`.
    fn cased(&self, text: &[u8], start: usize) -> Cased {
        let mut end = start;
        let mut last_both = None;
        while let Some((class, len)) = self.at(text, end).filter(|(class, _)| class & UPPER != 0) {
            end += len;
            if class & LOWER != 0 {
                last_both = Some(end);
            }
        }
        let after = self.run(text, end, LOWER);
        // The upper-case part backtracks until its last character can be the lower-case part.
        Cased {
            with_lower: if after > end { Some(after) } else { last_both },
            with_upper: (end > start).then_some(after),
        }
    }

    /// Matches `\s*[\r\n]+` if `breaks`, then `\s+(?!\S)|\s+`.
    fn white(&self, text: &[u8], start: usize, breaks: bool) -> usize {
        let (mut end, mut last, mut after_break) = (start, start, None);
        while let Some((_, len)) = self.at(text, end).filter(|(class, _)| class & SPACE != 0) {
            last = end;
            end += len;
            if is_line_break(text[last]) {
                after_break = Some(end);
            }
        }
        match after_break {
            Some(after) if breaks => after,
            _ if end == text.len() || last == start => end,
            _ => last,
        }
    }

    /// Returns the end of the run of characters in any of these classes.
    #[inline]
    fn run(&self, text: &[u8], mut at: usize, classes: u8) -> usize {
        while let Some((_, len)) = self.at(text, at).filter(|(class, _)| class & classes != 0) {
            at += len;
        }
        at
    }

    /// Returns the end of the run of characters in none of these classes.
    #[inline]
    fn none_of(&self, text: &[u8], mut at: usize, classes: u8) -> usize {
        while let Some((_, len)) = self.at(text, at).filter(|(class, _)| class & classes == 0) {
            at += len;
        }
        at
    }

    /// Like [`run`](Self::run), with at most `max` characters.
    fn at_most(&self, text: &[u8], mut at: usize, classes: u8, max: usize) -> usize {
        let mut count = 0;
        while let Some((_, len)) = self.at(text, at).filter(|(class, _)| class & classes != 0) {
            if count == max {
                break;
            }
            count += 1;
            at += len;
        }
        at
    }

    /// Returns the classes and the length of the character at a position; `None` at the end.
    #[inline]
    fn at(&self, text: &[u8], at: usize) -> Option<(u8, usize)> {
        let first = *text.get(at)?;
        if first < 0x80 {
            return Some((self.classes[usize::from(first)], 1));
        }
        self.beyond_ascii(text.get(at..)?)
    }

    fn beyond_ascii(&self, text: &[u8]) -> Option<(u8, usize)> {
        let tail = |byte: u8| u32::from(byte & 0x3f);
        let (code, len) = match *text {
            [a @ 0xc2..0xe0, b, ..] => (u32::from(a & 0x1f) << 6 | tail(b), 2),
            [a @ 0xe0..0xf0, b, c, ..] => (u32::from(a & 0xf) << 12 | tail(b) << 6 | tail(c), 3),
            [a @ 0xf0..=0xff, b, c, d, ..] => {
                (u32::from(a & 7) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d), 4)
            }
            // Not UTF-8: an earlier step split within a character.
            _ => return Some((0, 1)),
        };
        Some((self.classes.get(code as usize).copied().unwrap_or(0), len))
    }
}

/// Ends of the two kinds of words of o200k.
#[derive(Default)]
struct Cased {
    with_lower: Option<usize>,
    with_upper: Option<usize>,
}

fn is_line_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

#[inline]
fn while_byte(text: &[u8], mut at: usize, is_part: impl Fn(u8) -> bool) -> usize {
    while text.get(at).is_some_and(|byte| is_part(*byte)) {
        at += 1;
    }
    at
}

/// Returns the end of `'s|'t|'re|'ve|'m|'ll|'d` at `start`, if there is one.
fn contraction(text: &[u8], start: usize, any_case: bool) -> Option<usize> {
    let rest = text.get(start..)?.strip_prefix(b"'")?;
    let lower = |byte: &u8| if any_case { byte.to_ascii_lowercase() } else { *byte };
    let first = rest.first().map(lower)?;
    let len = match (first, rest.get(1).map(lower)) {
        (b's' | b't' | b'm' | b'd', _) => 2,
        (b'r', Some(b'e')) | (b'v', Some(b'e')) | (b'l', Some(b'l')) => 3,
        // U+017F (long s) folds to s.
        (0xc5, Some(0xbf)) if any_case => 3,
        _ => return None,
    };
    Some(start + len)
}

#[cfg(test)]
mod tests {
    use super::super::step::Step;
    use super::super::table::TABLE;
    use super::*;

    const PATTERNS: [&str; 9] = [
        GPT2,
        CL100K,
        CL100K_DIGITS,
        CL100K_RUNS,
        CL100K_MARKS,
        UFAKZEKA,
        O200K,
        O200K_DIGITS,
        TEKKEN,
    ];

    /// A few characters of each class, so that all adjacencies occur.
    const LETTERS: &str = "aZstmdrvel'SLE 1\u{b2}٣\n\r\t\u{3000}\u{a0}/!-.ǅʰ中ͅ\u{301}\u{fe0f}ßÉſ😀\u{e000}\u{378}\u{0}\u{a7da}\u{10d40}";

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }

        fn text(&mut self) -> String {
            let letters: Vec<char> = LETTERS.chars().collect();
            (0..self.below(24))
                .map(|_| match self.below(12) {
                    0 => char::from_u32(self.below(0x30000) as u32).unwrap_or(' '),
                    1..4 => ' ',
                    _ => letters[self.below(letters.len())],
                })
                .collect()
        }
    }

    fn parts(text: &str, split: impl Fn(&[u8], &mut dyn FnMut(usize, usize))) -> Vec<String> {
        let mut parts = Vec::new();
        split(text.as_bytes(), &mut |start, end| parts.push(text[start..end].to_owned()));
        parts
    }

    #[test]
    fn scanners_match_their_expressions() {
        let mut random = Random(7);
        for (pattern, compat) in
            PATTERNS.iter().flat_map(|p| [(p, Compat::Original), (p, Compat::LlamaCpp)])
        {
            let scanner = Scanner::for_pattern(pattern, compat).unwrap();
            let step = Step::pattern(pattern, compat);
            for _ in 0..10_000 {
                let text = random.text();
                let scanned = parts(&text, |text, out| scanner.split(text, out));
                let matched = parts(&text, |text, out| step.split(text, out));
                assert_eq!(scanned, matched, "{pattern}, {compat:?} on {text:?}");
            }
        }
    }

    #[test]
    fn every_step_covers_the_text() {
        let mut random = Random(8);
        for row in TABLE.iter().filter(|row| row.names != ["(words)"]) {
            let original = row.original.iter().map(|split| (split, Compat::Original));
            let llama_cpp = row.llama_cpp.unwrap_or(row.original).iter();
            for (split, compat) in original.chain(llama_cpp.map(|split| (split, Compat::LlamaCpp)))
            {
                let step = Step::new(split, compat);
                for _ in 0..200 {
                    let text = random.text();
                    let mut end = 0;
                    step.split(text.as_bytes(), &mut |from, to| {
                        assert!(from == end && to > from, "{:?} on {text:?}", row.names);
                        end = to;
                    });
                    assert_eq!(end, text.len(), "{:?} on {text:?}", row.names);
                }
            }
        }
    }
}
