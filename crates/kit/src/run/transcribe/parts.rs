//! From what a model wrote for a window to parts with a beginning and an end.

/// A run of tokens, and when it is spoken.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// In steps of time from the beginning of the window.
    pub start: usize,
    /// The same.
    pub end: usize,
    /// Ids, times included.
    pub ids: Vec<u32>,
}

/// The parts of a window of so many steps, and the step from which to go on.
///
/// What comes after the last pair of times is left for the next window, unless the text ends with one
/// time: then nobody speaks after it.
pub(super) fn parts(ids: &[u32], first_time: u32, steps: usize) -> (Vec<Part>, usize) {
    let time = |id: &u32| id.checked_sub(first_time).map(|step| step as usize);
    let is_time = |at: usize| ids.get(at).and_then(time).is_some();
    let ends_once = ids.len() >= 2 && is_time(ids.len() - 1) && !is_time(ids.len() - 2);
    let mut cuts: Vec<usize> =
        (1..ids.len()).filter(|&at| is_time(at - 1) && is_time(at)).collect();
    if cuts.is_empty() {
        let end = ids.iter().filter_map(time).next_back().filter(|end| *end > 0);
        let part = Part { start: 0, end: end.unwrap_or(steps), ids: ids.to_vec() };
        return (vec![part], steps);
    }
    if ends_once {
        cuts.push(ids.len());
    }
    let mut parts = Vec::new();
    let (mut from, mut last) = (0, 0);
    for cut in cuts {
        let ids = ids.get(from..cut).unwrap_or_default();
        let step = |id: Option<&u32>| id.and_then(time).unwrap_or(0);
        last = step(ids.last());
        parts.push(Part { start: step(ids.first()), end: last, ids: ids.to_vec() });
        from = cut;
    }
    // It goes on in any case.
    (parts, if ends_once { steps } else { last.clamp(1, steps.max(1)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: usize, end: usize, ids: &[u32]) -> Part {
        Part { start, end, ids: ids.to_vec() }
    }

    #[test]
    fn pairs_of_times_cut() {
        let ids = [100, 1, 2, 110, 110, 3, 130, 135, 4];
        let found = parts(&ids, 100, 1500);
        // The last part has no end yet.
        let expected = vec![part(0, 10, &ids[..4]), part(10, 30, &ids[4..7])];
        assert_eq!(found, (expected, 30));
    }

    #[test]
    fn a_time_at_the_end_ends_the_window() {
        let ids = [100, 1, 110, 110, 2, 130];
        let expected = vec![part(0, 10, &ids[..3]), part(10, 30, &ids[3..])];
        assert_eq!(parts(&ids, 100, 1500), (expected, 1500));
        let ids = [100, 1, 130];
        assert_eq!(parts(&ids, 100, 1500), (vec![part(0, 30, &ids)], 1500));
    }

    #[test]
    fn a_pair_at_the_end_goes_on_there() {
        let ids = [100, 1, 130, 130];
        assert_eq!(parts(&ids, 100, 1500), (vec![part(0, 30, &ids[..3])], 30));
    }

    #[test]
    fn without_times_it_is_the_whole_window() {
        assert_eq!(parts(&[1, 2], 100, 700), (vec![part(0, 700, &[1, 2])], 700));
        assert_eq!(parts(&[100, 1], 100, 700), (vec![part(0, 700, &[100, 1])], 700));
        assert_eq!(parts(&[], 100, 700), (vec![part(0, 700, &[])], 700));
    }

    #[test]
    fn it_always_goes_on() {
        let (_, on) = parts(&[100, 100, 1], 100, 700);
        assert_eq!(on, 1);
    }
}
