//! Which architecture the names of a file's tensors belong to.

use std::collections::{HashMap, HashSet};

use gguf::TensorInfo;
use gguf_models::schema::{Architecture, Presence, architectures};

/// How well the names of tensors fit an architecture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fit {
    /// Names that the architecture lacks, and names it needs that are missing.
    pub strange: usize,
    /// Names that the architecture has besides.
    unused: usize,
    /// Names in common.
    known: usize,
}

impl Fit {
    /// Names of tensors with `{i}` in place of numbers, each once.
    pub fn names(tensors: &[TensorInfo]) -> HashSet<String> {
        tensors.iter().map(|tensor| pattern(&tensor.name)).collect()
    }

    pub fn of(architecture: &Architecture, names: &HashSet<String>) -> Self {
        // A tensor can stand in blocks of two kinds; needed by one, it counts as needed.
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
        Self { strange: names.len() - known + missing, unused: own.len() - known - missing, known }
    }

    /// The best fit, and the architectures that lack and miss no more than that.
    pub fn best(names: &HashSet<String>) -> Option<(Self, String)> {
        const SHOWN: usize = 3;
        let fits = architectures().filter(|architecture| !architecture.open);
        let mut fits: Vec<_> = fits.map(|one| (Self::of(one, names), one.name)).collect();
        fits.retain(|(fit, _)| fit.known > 0);
        fits.sort();
        let (best, _) = *fits.first()?;
        let same = fits.iter().filter(|(fit, _)| fit.strange == best.strange);
        let same: Vec<_> = same.map(|(_, name)| *name).take(SHOWN).collect();
        Some((best, same.join(" or ")))
    }
}

/// A tensor's name with `{i}` in place of numbers.
pub(super) fn pattern(name: &str) -> String {
    let replace = |segment| {
        let number = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
        if str::is_empty(segment) || !number(segment) { segment } else { "{i}" }
    };
    name.split('.').map(replace).collect::<Vec<_>>().join(".")
}
