//! Lists of digests to check models against.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::hash::{Algorithm, Entry};

/// Digests that a model should have, from a file that `llama-gguf-hash` or we wrote.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    digests: HashMap<(Algorithm, String), String>,
}

/// What a manifest says about a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It is the one listed.
    Ok,
    /// Another one is listed.
    Mismatch,
    /// None is listed.
    NotFound,
}

/// As `llama-gguf-hash` prints it.
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

    /// Lines that are no digests are passed over; of several for one name the first counts.
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
    /// The algorithms it has digests of.
    pub fn algorithms(&self) -> BTreeSet<Algorithm> {
        self.digests.keys().map(|&(algorithm, _)| algorithm).collect()
    }

    /// The algorithm to check with if none is asked for; `None` if there are no digests.
    pub fn strongest(&self) -> Option<Algorithm> {
        use Algorithm::{Sha1, Sha256, Uuid, Xxh64};
        let known = self.algorithms();
        [Sha256, Sha1, Xxh64, Uuid].into_iter().find(|algorithm| known.contains(algorithm))
    }

    /// Looks a digest up: under its name, else under the file's name in any directory.
    pub fn check(&self, entry: &Entry) -> Match {
        let find = |name: &str| self.digests.get(&(entry.algorithm, name.to_owned()));
        match find(&entry.name).or_else(|| find(without_directories(&entry.name))) {
            None => Match::NotFound,
            Some(digest) if digest.eq_ignore_ascii_case(&entry.digest) => Match::Ok,
            Some(_) => Match::Mismatch,
        }
    }
}

/// Tensor names may have slashes too: those stay.
fn without_directories(name: &str) -> &str {
    let label = name.find(".gguf:").unwrap_or(name.len());
    let start = name[..label].rfind(['/', '\\']).map_or(0, |at| at + 1);
    &name[start..]
}

/// Sums up the checks of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Digests as listed.
    pub ok: u64,
    /// Digests other than listed.
    pub mismatched: u64,
    /// Digests that are not listed.
    pub not_found: u64,
}

/// What a check comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All digests that are listed are right; at least one is.
    Success,
    /// A digest is wrong.
    Failure,
    /// None is listed: perhaps the manifest is of another file.
    MissingEntry,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, found: Match) {
        match found {
            Match::Ok => self.ok += 1,
            Match::Mismatch => self.mismatched += 1,
            Match::NotFound => self.not_found += 1,
        }
    }

    /// The rule of `llama-gguf-hash`: what is not listed does not matter if anything is.
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
    fn digests_are_found_by_name_and_by_file() {
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
