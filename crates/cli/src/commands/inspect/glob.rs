//! Patterns for names.

use regex::Regex;

use crate::failure::Failure;

/// A pattern in which `*` stands for any characters and `?` for one; without either, a part of the name.
pub struct Glob(Regex);

impl Glob {
    /// Of what the user typed.
    pub fn new(pattern: &str) -> Result<Self, Failure> {
        let escaped = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
        let is_glob = pattern.contains(['*', '?']);
        let regex = if is_glob { format!("(?s)^{escaped}$") } else { escaped };
        Regex::new(&regex).map(Self).map_err(|fault| Failure::Usage(fault.to_string()))
    }

    /// Whether a name fits.
    pub fn fits(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// Says that nothing fits a pattern of the user.
pub fn nothing_fits(what: &str, pattern: &str) -> Failure {
    Failure::Usage(format!("no {what} fits `{pattern}`: * stands for any characters, ? for one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_fit_whole_names_and_words_parts() {
        let fits = |pattern: &str, name: &str| Glob::new(pattern).ok().unwrap().fits(name);
        assert!(fits("general.*", "general.name") && !fits("general.*", "x.general.name"));
        assert!(fits("blk.?.attn_q*", "blk.0.attn_q.weight") && !fits("blk.?.x", "blk.10.x"));
        assert!(fits("rope", "llama.rope.freq_base") && !fits("r.pe", "llama.rope.freq_base"));
        assert!(fits("*", "") && fits("*", "a\nb"));
    }
}
