//! Shares of a run, for several machines and for work that is interrupted: what each window gave, kept so
//! that all parts together give the same bits as one run.

mod file;
mod tally;

use std::collections::BTreeMap;
use std::ops::Range;

use gguf::Error;
pub use tally::{Divergences, Importance, Perplexities, Tally};

/// A part of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// What was asked for, by name: parts of another question do not come together.
    pub run: BTreeMap<String, String>,
    /// What the models were compared with, for people.
    pub reference: Option<String>,
    /// Of each model its share.
    pub portions: Vec<Portion>,
    /// What the tokens stand for that are named among the worst predictions.
    pub tokens: BTreeMap<u32, Vec<u8>>,
}

/// What was read with one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Portion {
    /// The model, for people.
    pub name: String,
    /// A digest of the model: others do not come together with it.
    pub digest: String,
    /// The windows to read.
    pub windows: Range<usize>,
    /// All windows of the text.
    pub total: usize,
    /// What was found in the first of them.
    pub tally: Tally,
}

impl Portion {
    /// The windows that are still to be read.
    pub fn rest(&self) -> Range<usize> {
        (self.windows.start + self.tally.windows()).min(self.windows.end)..self.windows.end
    }
}

impl Part {
    /// Puts parts of one run together, in whichever order they come; each with the name of its file.
    ///
    /// # Errors
    /// `part-other-run` if they are not of the same run, `part-missing` if one is missing, twice there, or
    /// not complete.
    pub fn merge(mut parts: Vec<(String, Self)>) -> Result<Self, Error> {
        parts.sort_by_key(|(_, part)| part.portions.first().map_or(0, |one| one.windows.start));
        let mut parts = parts.into_iter();
        let Some((first, mut whole)) = parts.next() else {
            return Err(missing("there is no part".to_owned()));
        };
        whole.require_complete(&first)?;
        for (name, part) in parts {
            whole.require_same(&part, &first, &name)?;
            part.require_complete(&name)?;
            for (whole, part) in whole.portions.iter_mut().zip(&part.portions) {
                if part.windows.start != whole.windows.end {
                    return Err(gap(whole.windows.end, part.windows.start, &name));
                }
                whole.windows.end = part.windows.end;
                whole.tally.append(&part.tally);
            }
            whole.tokens.extend(part.tokens);
        }
        match whole.portions.iter().find(|one| one.windows != (0..one.total)) {
            Some(one) if one.windows.start > 0 => Err(gap(0, one.windows.start, &first)),
            Some(one) => Err(gap(one.windows.end, one.total, "the end")),
            None => Ok(whole),
        }
    }

    /// That another part is of the same run.
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
            "number of windows or tensors".to_owned()
        } else {
            return Ok(());
        };
        let what = format!("the {what} of {theirs} is not that of {ours}");
        Err(Error::request("part-other-run", what, "make the parts with the same command"))
    }

    fn require_complete(&self, name: &str) -> Result<(), Error> {
        match self.portions.iter().find(|one| !one.rest().is_empty()) {
            Some(one) => {
                let (read, of) = (one.tally.windows(), one.windows.len());
                let what = format!("{name} has {read} of its {of} windows");
                Err(Error::request("part-missing", what, "go on with it with --resume"))
            }
            None => Ok(()),
        }
    }
}

fn missing(what: String) -> Error {
    Error::request("part-missing", what, "each window has to be in one part")
}

fn gap(end: usize, start: usize, name: &str) -> Error {
    missing(match start > end {
        true => format!("windows {} to {start} before {name} are in no part", end + 1),
        false => format!("windows before {} are in {name} and in another part", end + 1),
    })
}
