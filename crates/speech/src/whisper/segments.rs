//! Splits the tokens of a window into segments at pairs of timestamps.

/// A run of tokens with its start and end, in timestamp steps from the beginning of the window.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TokenSpan {
    pub start: usize,
    pub end: usize,
    /// Token ids, timestamps included.
    pub ids: Vec<u32>,
}

/// Splits the tokens of a window of `steps` timestamp steps. Returns the spans and the step at which the next
/// window starts.
///
/// Tokens after the last pair of timestamps belong to the next window, unless the text ends with a single
/// timestamp, after which there is no more speech in the window.
pub(super) fn split(ids: &[u32], first_timestamp: u32, steps: usize) -> (Vec<TokenSpan>, usize) {
    let step_of = |id: &u32| id.checked_sub(first_timestamp).map(|step| step as usize);
    let is_timestamp = |at: usize| ids.get(at).and_then(step_of).is_some();
    let single_at_end =
        ids.len() >= 2 && is_timestamp(ids.len() - 1) && !is_timestamp(ids.len() - 2);
    let mut cuts: Vec<usize> =
        (1..ids.len()).filter(|&at| is_timestamp(at - 1) && is_timestamp(at)).collect();
    if cuts.is_empty() {
        let end = ids.iter().filter_map(step_of).next_back().filter(|end| *end > 0);
        let span = TokenSpan { start: 0, end: end.unwrap_or(steps), ids: ids.to_vec() };
        return (vec![span], steps);
    }
    if single_at_end {
        cuts.push(ids.len());
    }
    let mut spans = Vec::new();
    let (mut from, mut last) = (0, 0);
    for cut in cuts {
        let ids = ids.get(from..cut).unwrap_or_default();
        let step = |id: Option<&u32>| id.and_then(step_of).unwrap_or(0);
        last = step(ids.last());
        spans.push(TokenSpan { start: step(ids.first()), end: last, ids: ids.to_vec() });
        from = cut;
    }
    // At least one step, so that transcription always advances.
    (spans, if single_at_end { steps } else { last.clamp(1, steps.max(1)) })
}

/// Splits the tokens of a part of a recording, which has `steps` timestamp steps. No window follows that would repeat
/// the tokens after the last pair of timestamps.
pub(super) fn split_part(ids: &[u32], first_timestamp: u32, steps: usize) -> Vec<TokenSpan> {
    let (mut spans, _) = split(ids, first_timestamp, steps);
    let rest = ids.get(spans.iter().map(|span| span.ids.len()).sum()..).unwrap_or_default();
    if let Some(first) = rest.first() {
        let start = first.checked_sub(first_timestamp).map(|step| step as usize);
        let start = start.or(spans.last().map(|span| span.end)).unwrap_or(0);
        spans.push(TokenSpan { start, end: steps, ids: rest.to_vec() });
    }
    for span in &mut spans {
        span.end = span.end.min(steps);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, end: usize, ids: &[u32]) -> TokenSpan {
        TokenSpan { start, end, ids: ids.to_vec() }
    }

    #[test]
    fn splits_at_pairs_of_timestamps() {
        let ids = [100, 1, 2, 110, 110, 3, 130, 135, 4];
        let found = split(&ids, 100, 1500);
        // The last span has no end yet.
        let expected = vec![span(0, 10, &ids[..4]), span(10, 30, &ids[4..7])];
        assert_eq!(found, (expected, 30));
    }

    #[test]
    fn single_timestamp_at_the_end_ends_the_window() {
        let ids = [100, 1, 110, 110, 2, 130];
        let expected = vec![span(0, 10, &ids[..3]), span(10, 30, &ids[3..])];
        assert_eq!(split(&ids, 100, 1500), (expected, 1500));
        let ids = [100, 1, 130];
        assert_eq!(split(&ids, 100, 1500), (vec![span(0, 30, &ids)], 1500));
    }

    #[test]
    fn next_window_starts_at_a_pair_at_the_end() {
        let ids = [100, 1, 130, 130];
        assert_eq!(split(&ids, 100, 1500), (vec![span(0, 30, &ids[..3])], 30));
    }

    #[test]
    fn without_timestamps_the_span_is_the_whole_window() {
        assert_eq!(split(&[1, 2], 100, 700), (vec![span(0, 700, &[1, 2])], 700));
        assert_eq!(split(&[100, 1], 100, 700), (vec![span(0, 700, &[100, 1])], 700));
        assert_eq!(split(&[], 100, 700), (vec![span(0, 700, &[])], 700));
    }

    #[test]
    fn parts_keep_the_tokens_after_the_last_pair() {
        let ids = [100, 1, 2, 110, 110, 3];
        let expected = vec![span(0, 10, &ids[..4]), span(10, 50, &ids[4..])];
        assert_eq!(split_part(&ids, 100, 50), expected);
        assert_eq!(split_part(&[1, 2], 100, 70), vec![span(0, 70, &[1, 2])]);
        // The window is longer than the part.
        assert_eq!(split_part(&[100, 1, 130], 100, 20), vec![span(0, 20, &[100, 1, 130])]);
        let ids = [100, 1, 110, 110, 2, 130];
        assert_eq!(split_part(&ids, 100, 50), split(&ids, 100, 50).0);
    }

    #[test]
    fn always_advances() {
        let (_, next) = split(&[100, 100, 1], 100, 700);
        assert_eq!(next, 1);
    }
}
