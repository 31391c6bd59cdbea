//! How alike two names are spelt: for messages that say which one may have been meant.

/// How many bytes must be put in, taken out or replaced to make one text of the other; `None` if
/// these are more than `limit`. It takes time for each pair of bytes, so texts are to be short, or
/// the limit is: files can have millions of names.
pub fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
        if row.iter().all(|&distance| distance > limit) {
            return None;
        }
    }
    row.last().copied().filter(|&distance| distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn single_edits_are_counted_up_to_the_limit() {
        let any = usize::MAX;
        assert_eq!(distance("", "abc", any), Some(3));
        assert_eq!(distance("kitten", "sitting", any), Some(3));
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("kitten", "sitting", 2), None);
        assert_eq!(distance("same", "same", 0), Some(0));
    }
}
