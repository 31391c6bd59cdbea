//! Repetition, frequency and presence penalties.

use std::collections::HashMap;

use super::{Candidate, SamplingOptions};

/// Applies the penalties to recent tokens.
pub(super) fn apply(sampling: &SamplingOptions, last: &[u32], candidates: &mut [Candidate]) {
    let SamplingOptions { repeat_penalty, frequency_penalty, presence_penalty, .. } = *sampling;
    if repeat_penalty == 1.0 && frequency_penalty == 0.0 && presence_penalty == 0.0 {
        return;
    }
    let mut counts: HashMap<u32, f32> = HashMap::new();
    for id in last {
        *counts.entry(*id).or_default() += 1.0;
    }
    for candidate in candidates {
        let Some(count) = counts.get(&candidate.id) else { continue };
        // A negative logit becomes less likely by moving away from 0.
        let factor = if candidate.score > 0.0 { 1.0 / repeat_penalty } else { repeat_penalty };
        candidate.score = candidate.score * factor - count * frequency_penalty - presence_penalty;
    }
}
