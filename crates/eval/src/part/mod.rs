//! Parts of a distributed or interrupted evaluation. The merged result is bit-identical to that of a single run.

mod file;
mod tally;

use std::collections::BTreeMap;
use std::ops::Range;

use gguf::Error;
pub use tally::{Divergences, Importance, Perplexities, Tally};

/// A part of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Named properties that all parts of a run share.
    pub run: BTreeMap<String, String>,
    /// Name of the reference.
    pub reference: Option<String>,
    /// Results of each model.
    pub portions: Vec<Portion>,
    /// Bytes of the tokens in the worst predictions.
    pub tokens: BTreeMap<u32, Vec<u8>>,
}

/// Results of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Portion {
    /// Name of the model.
    pub name: String,
    /// Digest of the model.
    pub digest: String,
    /// Digest of the tensors, by which the file is recognized after an edit of its metadata, if the run states it.
    pub tensor_digest: Option<String>,
    /// Chunks of this part.
    pub chunks: Range<usize>,
    /// Total number of chunks.
    pub total: usize,
    /// Results of the finished chunks.
    pub tally: Tally,
}

impl Portion {
    /// Returns the remaining chunks.
    pub fn rest(&self) -> Range<usize> {
        (self.chunks.start + self.tally.chunks()).min(self.chunks.end)..self.chunks.end
    }
}

impl Part {
    /// Merges the parts of a run, each with its file name, in any order.
    ///
    /// # Errors
    /// `part-other-run` if a part belongs to another run; `part-missing` if a part is missing, duplicate or incomplete.
    pub fn merge(mut parts: Vec<(String, Self)>) -> Result<Self, Error> {
        parts.sort_by_key(|(_, part)| part.portions.first().map_or(0, |one| one.chunks.start));
        let mut parts = parts.into_iter();
        let Some((first, mut whole)) = parts.next() else {
            return Err(missing("no part is given".to_owned()));
        };
        whole.require_complete(&first)?;
        for (name, part) in parts {
            whole.require_same(&part, &first, &name)?;
            part.require_complete(&name)?;
            for (whole, part) in whole.portions.iter_mut().zip(&part.portions) {
                if part.chunks.start != whole.chunks.end {
                    return Err(gap(whole.chunks.end, part.chunks.start, &name));
                }
                whole.chunks.end = part.chunks.end;
                whole.tally.append(&part.tally);
            }
            whole.tokens.extend(part.tokens);
        }
        match whole.portions.iter().find(|one| one.chunks != (0..one.total)) {
            Some(one) if one.chunks.start > 0 => Err(gap(0, one.chunks.start, &first)),
            Some(one) => Err(gap(one.chunks.end, one.total, "the end")),
            None => Ok(whole),
        }
    }

    /// Refuses a part of another run.
    ///
    /// # Errors
    /// `part-other-run`, with what differs.
    pub fn require_same(&self, other: &Self, ours: &str, theirs: &str) -> Result<(), Error> {
        let portions = || self.portions.iter().zip(&other.portions);
        let names = self.run.keys().chain(other.run.keys());
        let differs = names.into_iter().find(|name| self.run.get(*name) != other.run.get(*name));
        let what = if let Some(what) = differs {
            what.clone()
        } else if self.portions.len() != other.portions.len() {
            "number of models".to_owned()
        } else if let Some((one, _)) = portions().find(|(a, b)| a.digest != b.digest) {
            format!("model {}", one.name)
        } else if portions().any(|(a, b)| a.total != b.total || !a.tally.is_like(&b.tally)) {
            "number of chunks or tensors".to_owned()
        } else {
            return Ok(());
        };
        let what = format!("the {what} of {theirs} is not that of {ours}");
        Err(Error::request("part-other-run", what, "create all parts with the same command"))
    }

    fn require_complete(&self, name: &str) -> Result<(), Error> {
        match self.portions.iter().find(|one| !one.rest().is_empty()) {
            Some(one) => {
                let (read, of) = (one.tally.chunks(), one.chunks.len());
                let what = format!("{name} has {read} of its {of} chunks");
                Err(Error::request("part-missing", what, "complete it with --resume"))
            }
            None => Ok(()),
        }
    }
}

fn missing(what: String) -> Error {
    Error::request("part-missing", what, "each chunk must be in exactly one part")
}

fn gap(end: usize, start: usize, name: &str) -> Error {
    missing(match start > end {
        true => format!("chunks {} to {start} before {name} are in no part", end + 1),
        false => format!("chunks before {} are in {name} and in another part", end + 1),
    })
}
