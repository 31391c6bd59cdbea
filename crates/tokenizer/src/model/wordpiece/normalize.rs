//! BERT normalization and pre-tokenization: splits at white space and punctuation, strips accents
//! and lower-cases.
//!
//! Behaves as `BertNormalizer` and `BertPreTokenizer` of `tokenizers`, with its Unicode tables; or
//! as llama.cpp.

mod llama_cpp;

use std::ops::Range;
use std::sync::OnceLock;

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

use crate::options::Compat;

/// Normalization settings of the model.
#[derive(Clone, Copy)]
pub(super) struct Normalizer {
    pub lowercase: bool,
    pub strip_accents: bool,
    pub compat: Compat,
}

/// Class of a character in BERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Part of a word.
    Text,
    /// Removed: NUL, U+FFFD, control and format characters.
    Removed,
    Space,
    /// A word of its own.
    Punctuation,
    /// A word of its own, before accents are stripped.
    Chinese,
    /// A combining accent.
    Mark,
}

impl Normalizer {
    /// Calls `out` with each non-empty word of `text`, as a range in some text.
    pub fn words(self, text: &str, out: impl FnMut(&[u8], Range<usize>)) {
        let mut words = Words { word: String::new(), out };
        if self.compat == Compat::LlamaCpp {
            self.llama_cpp(text, &mut words);
            return words.end();
        }
        let (mut rest, mut lower) = (text, String::new());
        while !rest.is_empty() {
            let ascii = rest.bytes().take_while(u8::is_ascii).count();
            let (head, tail) = rest.split_at(ascii);
            if self.lowercase {
                lower.clear();
                lower.push_str(head);
                lower.make_ascii_lowercase();
                words.push_ascii(&lower);
            } else {
                words.push_ascii(head);
            }
            // Consecutive accents are put in canonical order, also across removed characters.
            let is_plain = |char: char| char.is_ascii() && class(char) != Class::Removed;
            let (head, tail) = tail.split_at(tail.find(is_plain).unwrap_or(tail.len()));
            self.beyond_ascii(head, &mut words);
            rest = tail;
        }
        words.end();
    }

    fn beyond_ascii<Out: FnMut(&[u8], Range<usize>)>(self, text: &str, words: &mut Words<Out>) {
        let clean =
            text.chars().filter(|char| class(*char) != Class::Removed).flat_map(
                |char| match class(char) {
                    Class::Space => [None, Some(' '), None],
                    Class::Chinese => [Some(' '), Some(char), Some(' ')],
                    _ => [None, Some(char), None],
                },
            );
        let clean = clean.flatten();
        if self.strip_accents {
            let is_kept = |char: &char| class(*char) != Class::Mark;
            self.cased(clean.nfd().filter(is_kept), words);
        } else {
            self.cased(clean, words);
        }
    }

    fn cased<Out: FnMut(&[u8], Range<usize>)>(
        self,
        chars: impl Iterator<Item = char>,
        words: &mut Words<Out>,
    ) {
        for char in chars {
            if self.lowercase {
                char.to_lowercase().for_each(|lower| words.push(lower, class(lower)));
            } else {
                words.push(char, class(char));
            }
        }
    }
}

/// The current word.
struct Words<Out> {
    /// Text of the word, except ASCII text that follows.
    word: String,
    out: Out,
}

impl<Out: FnMut(&[u8], Range<usize>)> Words<Out> {
    /// Adds ASCII text. Words within `text`, except the first and the last, are not copied.
    fn push_ascii(&mut self, text: &str) {
        let mut start = 0;
        for (i, byte) in text.bytes().enumerate() {
            let class = ASCII[usize::from(byte)];
            if class == Class::Text {
                continue;
            }
            if class == Class::Removed || !self.word.is_empty() {
                self.word.push_str(&text[start..i]);
            } else if start < i {
                (self.out)(text.as_bytes(), start..i);
            }
            start = i + 1;
            if class != Class::Removed {
                self.end();
            }
            if class == Class::Punctuation {
                (self.out)(text.as_bytes(), i..start);
            }
        }
        self.word.push_str(&text[start..]);
    }

    #[inline]
    fn push(&mut self, char: char, class: Class) {
        match class {
            Class::Text | Class::Chinese | Class::Mark => self.word.push(char),
            Class::Removed => {}
            Class::Space => self.end(),
            Class::Punctuation => {
                self.end();
                self.word.push(char);
                self.end();
            }
        }
    }

    #[inline]
    fn end(&mut self) {
        if !self.word.is_empty() {
            (self.out)(self.word.as_bytes(), 0..self.word.len());
            self.word.clear();
        }
    }
}

/// Classes of ASCII characters.
static ASCII: [Class; 128] = {
    let mut classes = [Class::Text; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = ascii_class(byte);
        byte += 1;
    }
    classes
};

const fn ascii_class(byte: u8) -> Class {
    match byte {
        b' ' | b'\t' | b'\n' | b'\r' => Class::Space,
        _ if byte.is_ascii_control() => Class::Removed,
        _ if byte.is_ascii_punctuation() => Class::Punctuation,
        _ => Class::Text,
    }
}

/// Classes of 256 characters each, filled on first use: a lookup takes many binary searches.
static PAGES: [OnceLock<Box<[Class; 256]>>; 0x1100] = [const { OnceLock::new() }; 0x1100];

#[inline]
fn class(char: char) -> Class {
    let code = char as usize;
    let page = PAGES[code >> 8].get_or_init(|| {
        let first = (code & !0xff) as u32;
        // Surrogates are never looked up.
        Box::new(std::array::from_fn(|i| {
            char::from_u32(first + i as u32).map_or(Class::Removed, find_class)
        }))
    });
    page[code & 0xff]
}

fn find_class(char: char) -> Class {
    if let Ok(byte) = u8::try_from(char)
        && byte.is_ascii()
    {
        return ascii_class(byte);
    }
    if char == char::REPLACEMENT_CHARACTER || char.is_other() {
        Class::Removed
    } else if char.is_whitespace() {
        Class::Space
    } else if is_chinese(char) {
        Class::Chinese
    } else if char.is_punctuation() {
        Class::Punctuation
    } else if char.is_mark_nonspacing() {
        Class::Mark
    } else {
        Class::Text
    }
}

/// Whether a character is in BERT's CJK blocks, with the wrong start of the last extension that
/// `tokenizers` and llama.cpp share.
fn is_chinese(char: char) -> bool {
    matches!(
        char as u32,
        0x4e00..=0x9fff
            | 0x3400..=0x4dbf
            | 0x2_0000..=0x2_a6df
            | 0x2_a700..=0x2_b73f
            | 0x2_b740..=0x2_b81f
            | 0x2_b920..=0x2_ceaf
            | 0xf900..=0xfaff
            | 0x2_f800..=0x2_fa1f
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, lowercase: bool, strip_accents: bool) -> Vec<String> {
        let mut words = Vec::new();
        let normalizer = Normalizer { lowercase, strip_accents, compat: Compat::Original };
        normalizer.words(text, |text, word| {
            words.push(String::from_utf8(text[word].to_vec()).unwrap());
        });
        words
    }

    #[test]
    fn splits_at_spaces_and_punctuation() {
        assert_eq!(words(" Hey,\tYou\u{a0}two!\r\n", true, true), ["hey", ",", "you", "two", "!"]);
        assert_eq!(words("a\u{0}b\u{7f}c\u{ad}d\u{fffd}\u{b}e", true, true), ["abcde"]);
        assert_eq!(words("«a\0b. C", true, true), ["«", "ab", ".", "c"]);
        assert_eq!(words("éa.éb\0c ", false, false), ["éa", ".", "ébc"]);
        assert_eq!(words("x^2 «y»", true, true), ["x", "^", "2", "«", "y", "»"]);
        assert!(words(" \n", true, true).is_empty());
    }

    #[test]
    fn ideographs_are_single_words() {
        assert_eq!(words("ab你好c", true, true), ["ab", "你", "好", "c"]);
        // Characters of other East Asian scripts are not.
        assert_eq!(words("カタ カナ", false, false), ["カタ", "カナ"]);
    }

    #[test]
    fn case_and_accents_follow_the_settings() {
        assert_eq!(words("Éa İ ẞ", true, true), ["ea", "i", "ß"]);
        assert_eq!(words("Éa İ", true, false), ["éa", "i\u{307}"]);
        assert_eq!(words("Éa", false, true), ["Ea"]);
        assert_eq!(words("É", false, false), ["É"]);
    }

    #[test]
    fn removed_characters_do_not_separate_accents() {
        // U+302E is not an accent in BERT, but precedes the removed U+0301 in canonical order.
        let expected = words("가\u{302e}", true, true);
        assert_eq!(words("가\u{301}\u{1}\u{302e}", true, true), expected);
    }
}
