//! Parts of a run put together.

use std::path::PathBuf;

use gguf_eval::part::{Part, Tally};
use gguf_quantize::imatrix::Imatrix;

use super::{Compared, Perplexity};
use crate::Error;

/// What parts make together.
pub enum Merged {
    /// Of each model how well it predicts.
    Perplexity(Vec<(String, Perplexity)>),
    /// Of each model how far it is from a reference.
    Divergence {
        /// The reference.
        reference: String,
        /// The models.
        models: Vec<String>,
        /// What was found of them.
        found: Compared,
    },
    /// An importance matrix.
    Importance(Imatrix),
}

/// Puts all parts of a run together, in whichever order they are given: the same figures as of one run, to
/// the bit.
///
/// # Errors
/// As [`Part::open`] and [`Part::merge`].
pub fn merge(paths: &[PathBuf]) -> Result<Merged, Error> {
    let open = |path: &PathBuf| Ok((path.display().to_string(), Part::open(path)?));
    let whole = Part::merge(paths.iter().map(open).collect::<Result<_, Error>>()?)?;
    let name = |number: usize| whole.portions[number].name.clone();
    let mut perplexities = Vec::new();
    for (number, portion) in whole.portions.iter().enumerate() {
        match &portion.tally {
            Tally::Perplexity(all) => perplexities.push((name(number), *all.total())),
            Tally::Importance(all) => return Ok(Merged::Importance(all.imatrix())),
            Tally::Divergence(_) => {
                let models = whole.portions.iter().map(|portion| portion.name.clone()).collect();
                let reference = whole.reference.clone().unwrap_or_default();
                return Ok(Merged::Divergence { reference, models, found: Compared::of(&whole) });
            }
        }
    }
    Ok(Merged::Perplexity(perplexities))
}
