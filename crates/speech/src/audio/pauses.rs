//! Pauses, at which a recording is cut into parts.

use std::ops::Range;

/// Frames of which the loudest counts: 0.1 s.
pub(super) const BLOCK: usize = 10;

/// Blocks of a pause between words.
const PAUSE: usize = 3;

/// Difference from the quietest pause, in powers of ten, up to which a pause is as good: the later one makes the part longer.
const TOLERANCE: f32 = 0.5;

/// Cuts blocks of some loudness into parts of at most `max` blocks, each at the last of the quietest pauses in the last third
/// of the longest possible part.
pub(super) fn parts(loudness: &[f32], max: usize) -> Vec<Range<usize>> {
    let max = max.max(1);
    let mut parts = Vec::new();
    let mut start = 0;
    while loudness.len() - start > max {
        let mut cuts = start + max - max / 3..=start + max;
        let quietest = cuts.clone().map(|cut| level(loudness, cut)).fold(f32::INFINITY, f32::min);
        let end = cuts.rfind(|cut| level(loudness, *cut) <= quietest + TOLERANCE);
        let end = end.unwrap_or(start + max);
        parts.push(start..end);
        start = end;
    }
    parts.push(start..loudness.len());
    parts
}

/// Returns the loudness of the loudest block around a cut.
fn level(loudness: &[f32], cut: usize) -> f32 {
    let around = cut.saturating_sub(PAUSE / 2)..(cut + PAUSE.div_ceil(2)).min(loudness.len());
    let around = loudness.get(around).unwrap_or_default();
    around.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_cut_in_pauses() {
        let mut loudness = vec![0.0; 700];
        // Of two pauses, the quieter one; shorter ones are between sounds of a word.
        loudness[220..224].fill(-3.0);
        loudness[260..264].fill(-2.0);
        loudness[280] = -9.0;
        let found = parts(&loudness, 300);
        let [first, second, last] = &found[..] else { panic!("{found:?}") };
        assert!(first.start == 0 && (221..=223).contains(&first.end), "{found:?}");
        assert_eq!(second.start, first.end);
        assert!((200..=300).contains(&second.len()), "{found:?}");
        assert_eq!(*last, second.end..700);
    }

    #[test]
    fn short_recordings_are_one_part() {
        let ends = |loudness: &[f32], max| -> Vec<usize> {
            parts(loudness, max).iter().map(|part| part.end).collect()
        };
        assert_eq!(ends(&[0.0; 300], 300), [300]);
        assert_eq!(ends(&[0.0], 300), [1]);
        assert_eq!(ends(&[], 300), [0]);
        assert_eq!(ends(&[0.0; 3], 1), [1, 2, 3]);
        let lens = parts(&[f32::NAN; 100], 10);
        assert!(lens.iter().all(|part| (1..=10).contains(&part.len())));
    }
}
