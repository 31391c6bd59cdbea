//! BERT normalization as in llama.cpp: one character at a time.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use super::{Class, Normalizer, Words, is_chinese};
use crate::model::classes::{LLAMA_CPP, fill};

/// llama.cpp's properties of a character.
#[derive(Clone, Copy)]
struct Entry {
    class: Class,
    /// Whether llama.cpp's tables have it. Other characters keep their accents and case.
    known: bool,
}

/// Properties by character; later classes take precedence.
static ENTRIES: LazyLock<Box<[Entry]>> = LazyLock::new(|| {
    let unknown = Entry { class: Class::Text, known: false };
    let mut entries = vec![unknown; char::MAX as usize + 1].into_boxed_slice();
    fill(&mut entries, LLAMA_CPP, |entry| entry.known = true);
    for (expression, class) in [
        // Enclosing and spacing marks too.
        (r"\p{M}", Class::Mark),
        (r"[\p{P}[\p{S}&&\p{ASCII}]]", Class::Punctuation),
        (r"[\p{Cc}\p{Cf}\p{Co}\x{FFFD}]", Class::Removed),
        // Vertical tab, form feed and U+0085, which BERT removes, are white space.
        (r"\s", Class::Space),
    ] {
        fill(&mut entries, &format!("[{expression}&&{LLAMA_CPP}]"), |entry| entry.class = class);
    }
    entries
});

impl Normalizer {
    pub(super) fn llama_cpp<Out: FnMut(&[u8], std::ops::Range<usize>)>(
        self,
        text: &str,
        words: &mut Words<Out>,
    ) {
        for char in text.chars() {
            let mut char = char;
            if self.strip_accents && ENTRIES[char as usize].known {
                // Only the first character of the decomposition, also for Hangul.
                char = char.nfd().next().unwrap_or(char);
            }
            // The class before lower-casing.
            let Entry { class, known } = ENTRIES[char as usize];
            if class == Class::Mark && self.strip_accents {
                continue;
            }
            let class = if is_chinese(char) { Class::Punctuation } else { class };
            if self.lowercase && known {
                // Only `İ` has more than one.
                char = char.to_lowercase().next().unwrap_or(char);
            }
            words.push(char, class);
        }
    }
}
