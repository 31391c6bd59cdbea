//! Filters: top-k, top-p, min-p and locally typical sampling.

use super::{Candidate, best_first};
use crate::portable::{exp, ln};

/// Keeps the best `count` candidates, best first; all for 0.
pub(super) fn top_k(candidates: &mut Vec<Candidate>, count: usize) {
    if count > 0 && count < candidates.len() {
        candidates.select_nth_unstable_by(count, best_first);
        candidates.truncate(count);
    }
    candidates.sort_unstable_by(best_first);
}

/// Keeps the fewest best candidates whose probabilities sum to `share`, and at least one.
pub(super) fn top_p(candidates: &mut Vec<Candidate>, share: f32) {
    if share >= 1.0 {
        return;
    }
    probabilities(candidates);
    keep_share(candidates, share);
}

/// Keeps candidates with at least `part` of the probability of the best one.
pub(super) fn min_p(candidates: &mut Vec<Candidate>, part: f32) {
    let Some(best) = candidates.first().filter(|_| part > 0.0) else { return };
    let least = best.score + ln(part);
    candidates.retain(|candidate| candidate.score >= least);
}

/// Keeps the fewest candidates whose surprise is closest to the entropy and whose probabilities sum to `share`.
pub(super) fn typical(candidates: &mut Vec<Candidate>, share: f32) {
    if share >= 1.0 {
        return;
    }
    probabilities(candidates);
    let surprise = |candidate: &Candidate| -ln(candidate.probability.max(f32::MIN_POSITIVE));
    let expected: f32 = candidates.iter().map(|c| c.probability * surprise(c)).sum();
    let distance = |candidate: &Candidate| (surprise(candidate) - expected).abs();
    candidates.sort_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.id.cmp(&b.id)));
    keep_share(candidates, share);
    candidates.sort_unstable_by(best_first);
}

/// Computes the probabilities of the candidates.
pub(super) fn probabilities(candidates: &mut [Candidate]) {
    let best = candidates.iter().map(|c| c.score).fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for candidate in candidates.iter_mut() {
        candidate.probability = exp(candidate.score - best);
        sum += candidate.probability;
    }
    candidates.iter_mut().for_each(|candidate| candidate.probability /= sum);
}

fn keep_share(candidates: &mut Vec<Candidate>, share: f32) {
    let mut sum = 0.0;
    let enough = candidates.iter().position(|candidate| {
        sum += candidate.probability;
        sum >= share
    });
    if let Some(last) = enough {
        candidates.truncate(last + 1);
    }
}
