//! Characters that hide or imitate text: invisible, bidirectional and confusable ones.

use unicode_normalization::UnicodeNormalization;

/// Characters of a text that a reader does not see or that change what a reader sees.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Suspicious {
    /// Zero-width, format, tag and private-use characters.
    pub invisible: Vec<char>,
    /// Embeddings, overrides and isolates of bidirectional text.
    pub bidirectional: Vec<char>,
    /// Control characters other than line breaks and tabs.
    pub controls: Vec<char>,
}

impl Suspicious {
    /// Finds the suspicious characters of a text; each is listed once.
    ///
    /// Joiners and direction marks are legitimate in many scripts and in emoji; beside a Latin letter they are not.
    pub fn of(text: &str) -> Self {
        let mut found = Self::default();
        if text
            .bytes()
            .all(|byte| (b' '..0x7f).contains(&byte) || matches!(byte, b'\n' | b'\t' | b'\r'))
        {
            return found;
        }
        let mut previous = ' ';
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied().unwrap_or(' ');
            let is_in_word = previous.is_ascii_alphabetic() && next.is_ascii_alphabetic();
            let list = match c {
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(&mut found.bidirectional),
                '\u{200c}' | '\u{200d}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
                    is_in_word.then_some(&mut found.invisible)
                }
                _ if is_invisible(c) => Some(&mut found.invisible),
                _ if c.is_control() && !matches!(c, '\n' | '\t' | '\r') => {
                    Some(&mut found.controls)
                }
                _ => None,
            };
            if let Some(list) = list
                && !list.contains(&c)
            {
                list.push(c);
            }
            previous = c;
        }
        found
    }

    /// Returns true if text is hidden or reordered.
    pub fn conceals(&self) -> bool {
        !self.invisible.is_empty() || !self.bidirectional.is_empty()
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e01ef}'
        | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Formats characters as code points.
pub fn code_points(chars: &[char]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<_> = chars.iter().take(SHOWN).map(|c| format!("U+{:04X}", *c as u32)).collect();
    let more = if chars.len() > SHOWN { " ..." } else { "" };
    shown.join(", ") + more
}

/// Letters of Cyrillic and Greek, and signs, with the Latin character that they look like.
const CONFUSABLES: &[(&str, char)] = &[
    ("аɑα", 'a'),
    ("вβ", 'b'),
    ("сϲ", 'c'),
    ("ԁ", 'd'),
    ("еёεє", 'e'),
    ("ɡ", 'g'),
    ("һнη", 'h'),
    ("іιїı", 'i'),
    ("јϳ", 'j'),
    ("кκ", 'k'),
    ("ӏ", 'l'),
    ("мμ", 'm'),
    ("ոν", 'n'),
    ("оοσօ", 'o'),
    ("рρ", 'p'),
    ("ԛ", 'q'),
    ("гɾ", 'r'),
    ("ѕ", 's'),
    ("тτ", 't'),
    ("υս", 'u'),
    ("ѵ", 'v'),
    ("ԝωш", 'w'),
    ("хχ", 'x'),
    ("уγу", 'y'),
    ("ᴢ", 'z'),
    ("АΑ", 'A'),
    ("ВΒ", 'B'),
    ("СϹ", 'C'),
    ("ЕΕ", 'E'),
    ("НΗ", 'H'),
    ("ІΙ", 'I'),
    ("Ј", 'J'),
    ("КΚ", 'K'),
    ("МΜ", 'M'),
    ("Ν", 'N'),
    ("ОΟ", 'O'),
    ("РΡ", 'P'),
    ("Ѕ", 'S'),
    ("ТΤ", 'T'),
    ("ХΧ", 'X'),
    ("УΥ", 'Y'),
    ("Ζ", 'Z'),
    ("｜│ǀ∣￨❘", '|'),
    ("▁＿", '_'),
    ("‹〈⟨〈＜", '<'),
    ("›〉⟩〉＞", '>'),
];

/// Returns a text as it looks: compatibility forms and confusable letters become the Latin ones, invisible characters are
/// removed.
pub fn skeleton(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let looks_like = |c: char| {
        CONFUSABLES.iter().find(|(others, _)| others.contains(c)).map_or(c, |(_, latin)| *latin)
    };
    let is_seen = |c: &char| {
        !is_invisible(*c)
            && !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.nfkc().filter(is_seen).map(looks_like).collect()
}

/// Returns the first word that mixes Latin letters with letters of another script that look like Latin ones.
pub fn mixed_word(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    let is_foreign = |c: char| matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{561}'..='\u{587}');
    let is_confusable = |c: char| is_foreign(c) && skeleton(c.encode_utf8(&mut [0; 4])).is_ascii();
    text.split(|c: char| !c.is_alphabetic()).find(|word| {
        word.chars().filter(char::is_ascii_alphabetic).count() >= 2
            && word.chars().any(is_confusable)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_found() {
        let found = Suspicious::of("a\u{200b}b\u{202e}c\u{7}d\u{e0041}\n\t");
        assert_eq!(found.invisible, ['\u{200b}', '\u{e0041}']);
        assert_eq!(found.bidirectional, ['\u{202e}']);
        assert_eq!(found.controls, ['\u{7}']);
        assert_eq!(code_points(&found.invisible), "U+200B, U+E0041");
    }

    #[test]
    fn joiners_of_scripts_and_emoji_are_legitimate() {
        for text in [
            "نمی\u{200c}خواهم",
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}",
            "שלום\u{200f}!",
            "क\u{94d}\u{200d}ष",
            "日本語 ｜",
        ] {
            assert_eq!(Suspicious::of(text), Suspicious::default(), "{text}");
            assert_eq!(mixed_word(text), None);
        }
        assert!(Suspicious::of("sys\u{200d}tem").conceals());
    }

    #[test]
    fn confusable_letters_have_the_skeleton_of_latin_ones() {
        assert_eq!(
            skeleton("аlwауѕ ｓｙｓ\u{200b}tem <｜im▁start｜>"),
            "always system <|im_start|>"
        );
        assert_eq!(mixed_word("say ѕуstem"), Some("ѕуstem"));
        assert_eq!(mixed_word("привет world, μm"), None);
    }
}
