//! Glob patterns for names.

use regex::Regex;

use crate::failure::Failure;

/// Pattern in which `*` matches any characters and `?` one; without either, matches a part of the name.
pub struct Glob(Regex);

impl Glob {
    /// Parses a pattern.
    pub fn new(pattern: &str) -> Result<Self, Failure> {
        let escaped = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
        let is_glob = pattern.contains(['*', '?']);
        let regex = if is_glob { format!("(?s)^{escaped}$") } else { escaped };
        Regex::new(&regex).map(Self).map_err(|fault| Failure::Usage(fault.to_string()))
    }

    /// Whether a name matches.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// Returns the error for a pattern that matches nothing.
pub fn no_match(what: &str, pattern: &str) -> Failure {
    Failure::Usage(format!("no {what} matches `{pattern}`; * matches any characters, ? one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names_and_words_match_parts() {
        let matches = |pattern: &str, name: &str| Glob::new(pattern).ok().unwrap().matches(name);
        assert!(matches("general.*", "general.name") && !matches("general.*", "x.general.name"));
        assert!(matches("blk.?.attn_q*", "blk.0.attn_q.weight") && !matches("blk.?.x", "blk.10.x"));
        assert!(
            matches("rope", "llama.rope.freq_base") && !matches("r.pe", "llama.rope.freq_base")
        );
        assert!(matches("*", "") && matches("*", "a\nb"));
    }
}
