//! Upper and lower case, and kinds of characters.

use unicode_categories::UnicodeCategories;

/// Appends the lower case of the character at this place; a sigma at the end of a word has a form
/// of its own.
fn push_lower(out: &mut String, chars: &[char], at: usize) {
    let is_ignored = |char: &char| char.is_mark_nonspacing() || "'.:^`·’".contains(*char);
    let is_word = |char: Option<&char>| char.is_some_and(|char| is_cased(*char));
    if chars[at] == 'Σ'
        && is_word(chars[..at].iter().rev().find(|char| !is_ignored(char)))
        && !is_word(chars[at + 1..].iter().find(|char| !is_ignored(char)))
    {
        out.push('ς');
    } else {
        out.extend(chars[at].to_lowercase());
    }
}

/// Appends the title case of a character: that of a digraph, else the first letter of its upper
/// case and the others in lower case.
fn push_title(out: &mut String, char: char) {
    match char {
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        _ => {
            let mut upper = char.to_uppercase();
            out.extend(upper.next());
            out.extend(upper.flat_map(char::to_lowercase));
        }
    }
}

/// Converts the first character to title case and the others to lower case.
pub fn capitalize(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for at in 0..chars.len() {
        match at {
            0 => push_title(&mut out, chars[0]),
            _ => push_lower(&mut out, &chars, at),
        }
    }
    out
}

/// Whether a character has upper and lower case.
fn is_cased(char: char) -> bool {
    char.is_ascii_alphabetic()
        || !char.is_ascii()
            && (char.is_lowercase() || char.is_uppercase() || char.is_letter_titlecase())
}

/// Converts the first character of each run of cased characters to title case, as `str.title`.
pub fn title(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut after_cased = false;
    for (at, char) in chars.iter().enumerate() {
        if after_cased {
            push_lower(&mut out, &chars, at);
        } else {
            push_title(&mut out, *char);
        }
        after_cased = is_cased(*char);
    }
    out
}

/// Exchanges upper and lower case.
pub fn swap(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for (at, char) in chars.iter().enumerate() {
        if char.is_uppercase() {
            push_lower(&mut out, &chars, at);
        } else if char.is_lowercase() {
            out.extend(char.to_uppercase());
        } else {
            out.push(*char);
        }
    }
    out
}

/// Converts to the form for comparisons without case; exact for what has no special folding but
/// the sharp s and the final sigma.
pub fn fold(text: &str) -> String {
    let lower: String = text.chars().flat_map(char::to_lowercase).collect();
    lower.replace('ß', "ss").replace('ς', "σ")
}

/// Whether cased characters exist and all are upper or lower case.
pub fn is_all(text: &str, upper: bool) -> bool {
    let mut cased = text.chars().filter(|char| is_cased(*char)).peekable();
    cased.peek().is_some() && cased.all(|char| char.is_uppercase() == upper)
}

/// Whether each run of cased characters begins with upper case and continues with lower case.
pub fn is_title(text: &str) -> bool {
    let (mut after_cased, mut found) = (false, false);
    for char in text.chars() {
        if is_cased(char) {
            if char.is_uppercase() == after_cased {
                return false;
            }
            found = true;
        }
        after_cased = is_cased(char);
    }
    found
}

/// Whether a text is not empty and all its characters are of this kind, as Python's `str.is...`.
pub fn is_kind(text: &str, kind: &str) -> bool {
    let test: fn(char) -> bool = match kind {
        "isalpha" => is_letter,
        "isdecimal" => |char| char.is_number_decimal_digit(),
        "isdigit" => is_digit,
        "isnumeric" => is_numeric,
        _ => |char| is_letter(char) || is_numeric(char),
    };
    !text.is_empty() && text.chars().all(test)
}

fn is_letter(char: char) -> bool {
    char.is_letter()
}

/// Whether a character is a digit, also one that is raised or circled.
fn is_digit(char: char) -> bool {
    char.is_number_decimal_digit()
        || matches!(char,
            '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⑴'..='⑼' | '⒈'..='⒐'
            | '⓪' | '⓵'..='⓽' | '⓿' | '❶'..='❾' | '➀'..='➈' | '➊'..='➒')
}

fn is_numeric(char: char) -> bool {
    char.is_number()
        || matches!(
            char,
            '一' | '二'
                | '三'
                | '四'
                | '五'
                | '六'
                | '七'
                | '八'
                | '九'
                | '十'
                | '百'
                | '千'
                | '万'
                | '億'
                | '兆'
                | '〇'
                | '零'
                | '亿'
                | '壹'
                | '贰'
                | '叁'
                | '两'
        )
}

/// Whether a text is a name of Python.
pub fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let begins = |char: char| char == '_' || char.is_letter() || char.is_number_letter();
    let continues = |char: char| {
        begins(char)
            || char.is_number_decimal_digit()
            || char.is_mark_nonspacing()
            || char.is_mark_spacing_combining()
            || char.is_punctuation_connector()
    };
    chars.next().is_some_and(begins) && chars.all(continues)
}
