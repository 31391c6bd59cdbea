//! Character classes of regular expressions.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

use crate::options::Compat;

/// `\p{L}`
pub(crate) const LETTER: u8 = 1;
/// `\p{N}`
pub(crate) const NUMBER: u8 = 2;
/// `\p{M}`
pub(crate) const MARK: u8 = 4;
/// `\s`
pub(crate) const SPACE: u8 = 8;
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`: can precede lower case within a word.
pub(crate) const UPPER: u8 = 16;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: can follow upper case within a word.
pub(crate) const LOWER: u8 = 32;
/// `\w`
pub(crate) const WORD: u8 = 64;

/// Characters in llama.cpp's tables: those of Unicode 15.1. Others have no class.
pub(crate) const LLAMA_CPP: &str = r"[\p{age=15.1}&&\P{Cn}]";

/// Classes of every character, from the tables of the regex engine so that both always agree; most
/// of its pages are never touched.
static CLASSES: LazyLock<Box<[u8]>> = LazyLock::new(|| {
    let mut classes = vec![0; char::MAX as usize + 1].into_boxed_slice();
    let expressions = [
        (LETTER, r"\p{L}"),
        (NUMBER, r"\p{N}"),
        (MARK, r"\p{M}"),
        (SPACE, r"\s"),
        (UPPER, r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
        (LOWER, r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
        (WORD, r"\w"),
    ];
    for (bit, expression) in expressions {
        fill(&mut classes, expression, |classes| *classes |= bit);
    }
    classes
});

/// Classes in llama.cpp.
static LLAMA_CPP_CLASSES: LazyLock<Box<[u8]>> = LazyLock::new(|| {
    let mut classes = CLASSES.clone();
    fill(&mut classes, &format!("[^{LLAMA_CPP}]"), |classes| *classes = 0);
    classes
});

/// Changes the entries of the characters in a class; the expression must be constant.
pub(crate) fn fill<T>(entries: &mut [T], expression: &str, mut change: impl FnMut(&mut T)) {
    // Every test parses all expressions.
    let parsed = regex_syntax::parse(expression).expect("a valid expression");
    let HirKind::Class(Class::Unicode(class)) = parsed.kind() else { return };
    for range in class.ranges() {
        entries[range.start() as usize..=range.end() as usize].iter_mut().for_each(&mut change);
    }
}

/// Returns the classes of a character.
pub(crate) fn classes_of(c: char) -> u8 {
    CLASSES[c as usize]
}

/// Returns the table of classes by character.
pub(crate) fn table(compat: Compat) -> &'static [u8] {
    match compat {
        Compat::Original => &CLASSES,
        Compat::LlamaCpp => &LLAMA_CPP_CLASSES,
    }
}
