//! Merging of the parts of a distributed evaluation.

use std::path::PathBuf;

use gguf_eval::part::{Part, Tally};
use gguf_quantize::imatrix::Imatrix;

use super::part_writer::fingerprint;
use super::{ComparisonReport, Perplexity};
use crate::Error;

/// Merged result of all parts.
pub enum Merged {
    /// Perplexity of each model.
    Perplexity(Vec<(String, Perplexity)>),
    /// KL divergence of each model from a reference.
    Divergence {
        /// The reference.
        reference: String,
        /// The models.
        models: Vec<String>,
        /// The results.
        found: ComparisonReport,
    },
    /// An importance matrix.
    Importance(Imatrix),
}

/// Merges all parts of a run, in any order. The result is bit-identical to that of a single run.
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
            Tally::Importance(all) => {
                let fingerprint = Some(fingerprint(&whole.run, &portion.digest, all.len));
                return Ok(Merged::Importance(Imatrix { fingerprint, ..all.imatrix() }));
            }
            Tally::Divergence(_) => {
                let models = whole.portions.iter().map(|portion| portion.name.clone()).collect();
                let reference = whole.reference.clone().unwrap_or_default();
                return Ok(Merged::Divergence {
                    reference,
                    models,
                    found: ComparisonReport::from_part(&whole),
                });
            }
        }
    }
    Ok(Merged::Perplexity(perplexities))
}
