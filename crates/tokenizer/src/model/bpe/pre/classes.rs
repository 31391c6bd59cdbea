//! Classes of characters, as the regular expressions name them.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

/// `\p{L}`
pub(super) const LETTER: u8 = 1;
/// `\p{N}`
pub(super) const NUMBER: u8 = 2;
/// `\p{M}`
pub(super) const MARK: u8 = 4;
/// `\s`
pub(super) const SPACE: u8 = 8;
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`: what can stand in front of lower case within a word.
pub(super) const UPPER: u8 = 16;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: what can stand behind.
pub(super) const LOWER: u8 = 32;
/// `\w`
pub(super) const WORD: u8 = 64;

/// The classes of every character. Made of the tables of the regular expressions, so that both
/// always agree; most of its pages are never touched.
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
        // The expressions are constants, all parsed in every test.
        let parsed = regex_syntax::parse(expression).expect("a valid expression");
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else { continue };
        for range in class.ranges() {
            for classes in &mut classes[range.start() as usize..=range.end() as usize] {
                *classes |= bit;
            }
        }
    }
    classes
});

/// The classes of a character.
pub(super) fn of(c: char) -> u8 {
    CLASSES[c as usize]
}

/// The table of classes, by character.
pub(super) fn table() -> &'static [u8] {
    &CLASSES
}
