//! Regular expressions of tensor names, in the grammar of llama.cpp's `--tensor-type`: `std::regex` in ECMAScript, with
//! look-around and back references.

use std::fmt;

use fancy_regex::{Regex, RegexBuilder};

/// Maximum number of backtracking steps of a match. A pattern that needs more matches nothing, and is reported.
const MAX_STEPS: usize = 1_000_000;

/// Regular expression that is searched for in tensor names.
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: String,
    regex: Regex,
}

/// Error: a text is not a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a regular expression{1}")]
pub struct InvalidPattern(String, String);

impl NamePattern {
    /// Parses a regular expression.
    ///
    /// # Errors
    /// If the text is not one.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let escaped = escape_classes(text);
        let built = RegexBuilder::new(&escaped).backtrack_limit(MAX_STEPS).build();
        let regex = built.map_err(|fault| {
            let place = match fault {
                fancy_regex::Error::ParseError(at, _) if escaped == text => {
                    format!(": it has a mistake after byte {at}")
                }
                _ => String::new(),
            };
            InvalidPattern(text.to_owned(), place)
        })?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Returns the text of the expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the expression is found in a name; false if the search exceeds its steps.
    pub fn is_match(&self, name: &str) -> bool {
        self.regex.is_match(name).unwrap_or(false)
    }

    /// Whether the search in a name exceeds its steps.
    pub fn is_too_slow(&self, name: &str) -> bool {
        self.regex.is_match(name).is_err()
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for NamePattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

/// Escapes characters of classes that mean themselves in ECMAScript, but nested classes and set operations here.
fn escape_classes(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let (mut in_class, mut chars) = (false, text.chars().peekable());
    while let Some(char) = chars.next() {
        match (in_class, char) {
            (_, '\\') => {
                escaped.push(char);
                escaped.extend(chars.next());
                continue;
            }
            (false, '[') => in_class = true,
            // `[:alpha:]` is a class by name in both.
            (true, '[') if chars.peek() == Some(&':') => {
                escaped.push(char);
                escaped.extend(chars.by_ref().take(1));
                escaped.extend(std::iter::from_fn(|| chars.next_if(|next| *next != ']')));
                escaped.extend(chars.next());
                continue;
            }
            (true, '[' | '&' | '~') => escaped.push('\\'),
            (true, ']') => in_class = false,
            _ => {}
        }
        escaped.push(char);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, names: &[&str]) -> Vec<bool> {
        let pattern = NamePattern::new(pattern).unwrap();
        names.iter().map(|name| pattern.is_match(name)).collect()
    }

    #[test]
    fn ecmascript_is_understood() {
        let names = ["blk.0.ffn_down.weight", "blk.11.ffn_down.weight", "blk.1.attn_q.weight"];
        assert_eq!(found(r"blk\.(?!0\.)\d+\.ffn", &names), [false, true, false]);
        assert_eq!(found(r"blk\.(\d)\1\.", &names), [false, true, false]);
        assert_eq!(found(r"^(?=.*attn)blk\.\d", &names), [false, false, true]);
        assert_eq!(found(r"\.[[:digit:]]{2}\.", &names), [false, true, false]);
        assert_eq!(found(r"blk[[.&~]0", &names), [true, false, false]);
        assert_eq!(found(r"ffn_(up|gate|down)\.weight$", &names), [true, true, false]);
        assert!(NamePattern::new("(").unwrap_err().to_string().starts_with("`(` is not a regular"));
    }

    #[test]
    fn backtracking_is_bounded() {
        let pattern = NamePattern::new(r"(?=(a+)+$)\1b").unwrap();
        let name = "a".repeat(60) + "!";
        assert!(pattern.is_too_slow(&name) || !pattern.is_match(&name));
        assert!(!pattern.is_match(&name));
        let slow = NamePattern::new(r"^(?:(a*)*\1)*$").unwrap();
        assert!(!slow.is_match(&name));
    }
}
