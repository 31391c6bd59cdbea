//! Detection of the architecture from tensor names.

use std::collections::{HashMap, HashSet};

use gguf::TensorInfo;
use gguf_models::schema::{Architecture, Presence, architectures};

/// Similarity of tensor names to an architecture; less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match {
    /// Number of unknown names plus missing required names.
    pub mismatches: usize,
    /// Number of optional names that are missing.
    unused: usize,
    /// Number of common names.
    known: usize,
}

impl Match {
    /// Returns the distinct names of tensors, with `{i}` in place of numbers.
    pub fn names(tensors: &[TensorInfo]) -> HashSet<String> {
        tensors.iter().map(|tensor| pattern(&tensor.name)).collect()
    }

    pub fn of(architecture: &Architecture, names: &HashSet<String>) -> Self {
        // A tensor can be in blocks of two kinds; required by one, it counts as required.
        let mut own: HashMap<String, Presence> = HashMap::new();
        for (name, presence) in architecture.tensor_names() {
            let entry = own.entry(name).or_insert(presence);
            if presence == Presence::Required {
                *entry = presence;
            }
        }
        let known = own.keys().filter(|name| names.contains(*name)).count();
        let missing = |(name, presence): &(&String, &Presence)| {
            **presence == Presence::Required && !names.contains(*name)
        };
        let missing = own.iter().filter(missing).count();
        Self {
            mismatches: names.len() - known + missing,
            unused: own.len() - known - missing,
            known,
        }
    }

    /// Returns the best match, and the architectures with the same number of mismatches.
    pub fn best(names: &HashSet<String>) -> Option<(Self, String)> {
        const SHOWN: usize = 3;
        let fits = architectures().filter(|architecture| !architecture.open);
        let mut fits: Vec<_> = fits.map(|one| (Self::of(one, names), one.name)).collect();
        fits.retain(|(fit, _)| fit.known > 0);
        fits.sort();
        let (best, _) = *fits.first()?;
        let same = fits.iter().filter(|(fit, _)| fit.mismatches == best.mismatches);
        let same: Vec<_> = same.map(|(_, name)| *name).take(SHOWN).collect();
        Some((best, same.join(" or ")))
    }
}

/// Returns the name of a tensor with `{i}` in place of numbers.
pub(super) fn pattern(name: &str) -> String {
    let replace = |segment| {
        let number = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
        if str::is_empty(segment) || !number(segment) { segment } else { "{i}" }
    };
    name.split('.').map(replace).collect::<Vec<_>>().join(".")
}
