//! Statistics of a matrix: overall, by row, by column, and outliers.

use gguf::Error;
use gguf_store::Progress;

use super::numbers::Numbers;
use super::pieces::{Pieces, Place};
use super::sums::{Figures, Sums, count};

/// Number of histogram bins.
const BINS: usize = 128;

/// Maximum number of entries of a profile.
const MAX_ENTRIES: u64 = 1024;

/// Number of outliers.
const OUTLIERS: usize = 50;

/// Statistics of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Whether all numbers were read; otherwise the statistics cover a sample.
    pub exact: bool,
    /// Number of elements of the matrix.
    pub count: u64,
    /// Overall statistics; the histogram has 128 bins.
    pub figures: Figures,
    /// Statistics by row.
    pub rows: Profile,
    /// Statistics by column.
    pub columns: Profile,
    /// Numbers with the greatest distance from the mean, the greatest first.
    pub outliers: Vec<Outlier>,
}

/// Statistics of groups of rows or columns of equal size.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Number of rows or columns per entry.
    pub per: u64,
    /// Entries; `None` without finite numbers.
    pub entries: Vec<Option<Entry>>,
}

/// Statistics of a group of rows or columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Minimum.
    pub min: f32,
    /// Maximum.
    pub max: f32,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

/// An outlier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Row.
    pub row: u64,
    /// Column.
    pub column: u64,
    /// Value.
    pub value: f32,
    /// Distance from the mean in standard deviations.
    pub deviations: f64,
}

/// Computes the statistics of all numbers, or of an evenly spread sample of about `budget`. Reads the data twice.
///
/// # Errors
/// If data cannot be read, or `progress` stopped the work.
pub fn statistics(
    numbers: &dyn Numbers,
    budget: u64,
    progress: &dyn Progress,
) -> Result<Statistics, Error> {
    let (rows, columns) = (numbers.rows(), numbers.columns());
    let pieces = Pieces::of(numbers, 0..rows, budget);
    let (by_row, by_column) = (Grouping::new(rows), Grouping::new(columns));
    progress.begin("reading", pieces.bytes().saturating_mul(2));
    let first = pieces.fold(
        numbers,
        progress,
        || {
            (
                Sums::default(),
                vec![Sums::default(); by_row.len()],
                vec![Sums::default(); by_column.len()],
            )
        },
        |(all, of_rows, of_columns), place, read| {
            // Sums by piece, so that the result is bit-identical to that of `values`.
            *all = all.and(Sums::of(read));
            for (row, line) in lines(place, read) {
                let entry = &mut of_rows[by_row.entry(row)];
                *entry = entry.and(Sums::of(line));
                by_column.add(of_columns, place.columns.start, line);
            }
        },
    )?;
    let mut all = Sums::default();
    let (mut of_rows, mut of_columns) =
        (vec![Sums::default(); by_row.len()], vec![Sums::default(); by_column.len()]);
    for (sums, part_rows, part_columns) in first {
        all = all.and(sums);
        add_each(&mut of_rows, &part_rows);
        add_each(&mut of_columns, &part_columns);
    }
    let mut figures = all.figures();
    let mut outliers = Vec::new();
    if figures.min < figures.max {
        let range = (figures.min, figures.max);
        let second = pieces.fold(
            numbers,
            progress,
            || (vec![0; BINS], Farthest::default()),
            |(counts, farthest), place, read| {
                count(read, range, counts);
                farthest.see(place, read, figures.mean);
            },
        )?;
        let mut farthest = Farthest::default();
        figures.histogram = vec![0; BINS];
        for (counts, part) in second {
            figures.histogram.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            farthest.found.extend(part.found);
        }
        outliers = farthest.outliers(figures.mean, figures.deviation);
    }
    Ok(Statistics {
        exact: pieces.is_all(),
        count: rows.saturating_mul(columns),
        figures,
        rows: by_row.profile(&of_rows),
        columns: by_column.profile(&of_columns),
        outliers,
    })
}

/// Returns the rows of a piece with their numbers.
fn lines<'r>(place: &Place, read: &'r [f32]) -> impl Iterator<Item = (u64, &'r [f32])> {
    let len = (place.columns.end - place.columns.start).max(1) as usize;
    place.rows.clone().zip(read.chunks(len))
}

fn add_each(sums: &mut [Sums], more: &[Sums]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.and(*more));
}

/// Grouping of rows or columns into entries.
struct Grouping {
    count: u64,
    per: u64,
}

impl Grouping {
    fn new(count: u64) -> Self {
        Self { count, per: count.div_ceil(MAX_ENTRIES).max(1) }
    }

    fn len(&self) -> usize {
        self.count.div_ceil(self.per) as usize
    }

    fn entry(&self, at: u64) -> usize {
        (at / self.per) as usize
    }

    /// Adds numbers to the entries of their columns.
    fn add(&self, sums: &mut [Sums], mut column: u64, line: &[f32]) {
        let mut rest = line;
        while !rest.is_empty() {
            let of_entry = (self.per - column % self.per).min(rest.len() as u64);
            let (these, others) = rest.split_at(of_entry as usize);
            let sum = &mut sums[self.entry(column)];
            *sum = sum.and(Sums::of(these));
            (rest, column) = (others, column + of_entry);
        }
    }

    fn profile(&self, sums: &[Sums]) -> Profile {
        let entry = |sums: &Sums| {
            let (min, max) = sums.range?;
            let (mean, deviation) = sums.mean_and_deviation();
            Some(Entry { min, max, mean, deviation })
        };
        Profile { per: self.per, entries: sums.iter().map(entry).collect() }
    }
}

/// Numbers with the greatest distance from the mean.
#[derive(Default)]
struct Farthest {
    /// Distance, row, column and value of candidates, before they are truncated.
    found: Vec<(f64, u64, u64, f32)>,
    /// Minimum distance of an outlier.
    least: f64,
}

impl Farthest {
    fn see(&mut self, place: &Place, read: &[f32], mean: f64) {
        for (row, line) in lines(place, read) {
            for (column, &x) in place.columns.clone().zip(line) {
                let distance = (f64::from(x) - mean).abs();
                if distance > self.least && x.is_finite() {
                    self.found.push((distance, row, column, x));
                    if self.found.len() >= 4 * OUTLIERS {
                        self.sort_out();
                        self.least = self.found.last().map_or(0.0, |last| last.0);
                    }
                }
            }
        }
    }

    fn sort_out(&mut self) {
        let place = |one: &(f64, u64, u64, f32)| (one.1, one.2);
        self.found.sort_by(|a, b| b.0.total_cmp(&a.0).then(place(a).cmp(&place(b))));
        self.found.truncate(OUTLIERS);
    }

    fn outliers(mut self, mean: f64, deviation: f64) -> Vec<Outlier> {
        self.sort_out();
        let outlier = |(_, row, column, value): (f64, u64, u64, f32)| Outlier {
            row,
            column,
            value,
            deviations: (f64::from(value) - mean).abs() / deviation,
        };
        self.found.into_iter().map(outlier).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// A matrix of zeros except one number, one NaN and one infinity.
    struct Spike {
        rows: u64,
        columns: u64,
    }

    impl Numbers for Spike {
        fn rows(&self) -> u64 {
            self.rows
        }

        fn columns(&self) -> u64 {
            self.columns
        }

        fn block_len(&self) -> u64 {
            1
        }

        fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
            *out = columns
                .map(|column| match (row, column) {
                    (2, 3) => -8.0,
                    (0, 1) => f32::NAN,
                    (1, 0) => f32::INFINITY,
                    _ => 0.0,
                })
                .collect();
            Ok(())
        }
    }

    #[test]
    fn statistics_and_profiles_are_exact() {
        let found = statistics(&Spike { rows: 4, columns: 5 }, u64::MAX, &()).unwrap();
        let figures = &found.figures;
        assert_eq!((found.exact, found.count, figures.count), (true, 20, 20));
        assert_eq!((figures.nan, figures.infinite, figures.zeros), (1, 1, 17));
        assert_eq!((figures.min, figures.max, figures.mean), (-8.0, 0.0, -8.0 / 18.0));
        assert_eq!((figures.histogram[0], figures.histogram[127]), (1, 17));
        let row = found.rows.entries[2].unwrap();
        assert_eq!((row.min, row.max, row.mean), (-8.0, 0.0, -1.6));
        let column = found.columns.entries[3].unwrap();
        assert_eq!((column.min, column.mean, column.deviation), (-8.0, -2.0, 12f64.sqrt()));
        let first = found.outliers[0];
        assert_eq!((first.row, first.column, first.value), (2, 3, -8.0));
        assert_eq!(found.outliers.len(), 18);
    }

    #[test]
    fn profiles_have_bounded_length() {
        let found = statistics(&Spike { rows: 5000, columns: 3000 }, 1 << 20, &()).unwrap();
        assert!(!found.exact && found.figures.count <= 1 << 20);
        assert_eq!((found.rows.per, found.rows.entries.len()), (5, 1000));
        assert_eq!((found.columns.per, found.columns.entries.len()), (3, 1000));
    }

    #[test]
    fn empty_matrix() {
        let found = statistics(&Spike { rows: 0, columns: 5 }, 100, &()).unwrap();
        assert_eq!((found.exact, found.count, found.rows.entries.len()), (true, 0, 0));
        assert_eq!(found.columns.entries, [None; 5]);
    }
}
