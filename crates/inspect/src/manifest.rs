//! Manifests of digests.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::hash::{Algorithm, Entry};

/// Expected digests of a model, from a file in the format of `llama-gguf-hash`.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    digests: HashMap<(Algorithm, String), String>,
}

/// Result of checking a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The digest matches.
    Ok,
    /// The manifest has another digest.
    Mismatch,
    /// The manifest has no digest.
    NotFound,
}

/// Formats the result as `llama-gguf-hash` does.
impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "Ok",
            Self::Mismatch => "Mismatch",
            Self::NotFound => "Not Found",
        })
    }
}

impl FromStr for Manifest {
    type Err = Infallible;

    /// Parses a manifest. Other lines are ignored; the first of several digests for one name applies.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let mut digests = HashMap::new();
        for line in text.lines() {
            let Some((algorithm, rest)) = line.trim().split_once(char::is_whitespace) else {
                continue;
            };
            let Ok(algorithm) = algorithm.parse() else { continue };
            let Some((digest, name)) = rest.trim_start().split_once(char::is_whitespace) else {
                continue;
            };
            let name = name.trim_start();
            for name in [name, without_directories(name)] {
                digests.entry((algorithm, name.to_owned())).or_insert_with(|| digest.to_owned());
            }
        }
        Ok(Self { digests })
    }
}

impl Manifest {
    /// Returns the algorithms of the digests.
    pub fn algorithms(&self) -> BTreeSet<Algorithm> {
        self.digests.keys().map(|&(algorithm, _)| algorithm).collect()
    }

    /// Returns the strongest algorithm; `None` without digests.
    pub fn strongest(&self) -> Option<Algorithm> {
        use Algorithm::{Sha1, Sha256, Uuid, Xxh64};
        let known = self.algorithms();
        [Sha256, Sha1, Xxh64, Uuid].into_iter().find(|algorithm| known.contains(algorithm))
    }

    /// Checks a digest by its name, or else by the file name in any directory.
    pub fn check(&self, entry: &Entry) -> Match {
        let find = |name: &str| self.digests.get(&(entry.algorithm, name.to_owned()));
        match find(&entry.name).or_else(|| find(without_directories(&entry.name))) {
            None => Match::NotFound,
            Some(digest) if digest.eq_ignore_ascii_case(&entry.digest) => Match::Ok,
            Some(_) => Match::Mismatch,
        }
    }
}

/// Removes directories from a label, but keeps slashes in tensor names.
fn without_directories(name: &str) -> &str {
    let label = name.find(".gguf:").unwrap_or(name.len());
    let start = name[..label].rfind(['/', '\\']).map_or(0, |at| at + 1);
    &name[start..]
}

/// Counts of the checks of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of matching digests.
    pub ok: u64,
    /// Number of mismatches.
    pub mismatched: u64,
    /// Number of digests that are not in the manifest.
    pub not_found: u64,
}

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// At least one digest matches, and none differs.
    Success,
    /// A digest differs.
    Failure,
    /// The manifest has none of the digests.
    MissingEntry,
}

impl Tally {
    /// Adds a result.
    pub fn add(&mut self, found: Match) {
        match found {
            Match::Ok => self.ok += 1,
            Match::Mismatch => self.mismatched += 1,
            Match::NotFound => self.not_found += 1,
        }
    }

    /// Returns the outcome by the rule of `llama-gguf-hash`: missing digests are ignored if any is listed.
    pub fn outcome(self) -> Outcome {
        match self {
            Self { mismatched: 1.., .. } => Outcome::Failure,
            Self { ok: 0, .. } => Outcome::MissingEntry,
            _ => Outcome::Success,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(digest: &str, name: &str) -> Entry {
        Entry { algorithm: Algorithm::Sha1, digest: digest.into(), name: name.into() }
    }

    #[test]
    fn finds_digests_by_name_and_file() {
        let text = "manifest x\n\nsha1      aa  d/m.gguf:a/b\nsha1  bb  e/m.gguf:a/b\n\
                    md5 cc m.gguf\nsha1      dd  d/my model.gguf\nxxh64 1";
        let Ok(manifest) = text.parse::<Manifest>();
        assert_eq!(manifest.strongest(), Some(Algorithm::Sha1));
        let cases = [
            ("aa", "d/m.gguf:a/b", Match::Ok),
            ("aa", "e/m.gguf:a/b", Match::Mismatch),
            ("AA", "m.gguf:a/b", Match::Ok),
            ("aa", "f/m.gguf:a/b", Match::Ok),
            ("aa", "m.gguf:b", Match::NotFound),
            ("dd", "my model.gguf", Match::Ok),
            ("cc", "m.gguf", Match::NotFound),
        ];
        for (digest, name, expected) in cases {
            assert_eq!(manifest.check(&entry(digest, name)), expected, "{name}");
        }
    }

    #[test]
    fn outcomes() {
        let tally = |ok, mismatched, not_found| Tally { ok, mismatched, not_found }.outcome();
        assert_eq!(tally(1, 0, 5), Outcome::Success);
        assert_eq!(tally(1, 1, 0), Outcome::Failure);
        assert_eq!(tally(0, 0, 3), Outcome::MissingEntry);
    }
}
