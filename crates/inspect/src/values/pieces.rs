//! Parallel iteration over all numbers of a matrix, or over an evenly spread sample.

use std::ops::Range;

use gguf::Error;
use gguf_store::Progress;
use rayon::prelude::*;

use super::numbers::{JOINT_READ, Numbers};

/// Maximum size of a piece.
const MAX_PIECE: u64 = 256 << 10;

/// Number of partial sums, which are added in order, so that results do not depend on the number of threads.
const PARTIAL_SUMS: u64 = 64;

/// Pieces of rows: all, or an evenly spread sample.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    rows: Range<u64>,
    columns: u64,
    /// Length of a piece; the last one of a row may be shorter.
    len: u64,
    /// Number of rows of a piece of whole rows; the last piece may have fewer.
    together: u64,
    /// Total number of pieces.
    total: u64,
    /// Number of pieces that are read.
    read: u64,
}

/// Position of a piece: columns of one row, or several whole rows.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub rows: Range<u64>,
    pub columns: Range<u64>,
}

impl Pieces {
    /// Selects pieces of `rows` with at most `budget` numbers in total, but at least one piece.
    pub fn of(numbers: &dyn Numbers, rows: Range<u64>, budget: u64) -> Self {
        let (columns, block) = (numbers.columns(), numbers.block_len().max(1));
        let len = columns.min((MAX_PIECE / block).max(1) * block).max(1);
        let together = (JOINT_READ / columns.max(1)).max(1);
        let count = rows.end - rows.start;
        let total = count.div_ceil(together).saturating_mul(columns.div_ceil(len));
        let read = (budget / (len * together)).clamp(1, total.max(1)).min(total);
        Self { rows, columns, len, together, total, read }
    }

    /// Whether all pieces are read.
    pub fn is_all(&self) -> bool {
        self.read == self.total
    }

    /// Returns the number of bytes for progress.
    pub fn bytes(&self) -> u64 {
        self.read.saturating_mul(self.len * self.together).saturating_mul(4)
    }

    /// Returns the position of the `i`-th piece that is read.
    fn place(&self, i: u64) -> Place {
        // The middle of its share.
        let number = match self.is_all() {
            true => i,
            false => {
                let middle = (2 * u128::from(i) + 1) * u128::from(self.total);
                (middle / (2 * u128::from(self.read))) as u64
            }
        };
        let of_row = self.columns.div_ceil(self.len).max(1);
        let start = number % of_row * self.len;
        let row = self.rows.start + number / of_row * self.together;
        Place {
            rows: row..(row + self.together).min(self.rows.end),
            columns: start..(start + self.len).min(self.columns),
        }
    }

    /// Folds the numbers of all pieces into partial results, which are returned in order.
    pub fn fold<T: Send>(
        &self,
        numbers: &dyn Numbers,
        progress: &dyn Progress,
        start: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, &Place, &[f32]) + Sync,
    ) -> Result<Vec<T>, Error> {
        let start = || (start(), Vec::new());
        let parts = self.visit(progress, start, |(sum, buffer), place| {
            match place.rows.end - place.rows.start {
                1 => numbers.read(place.rows.start, place.columns.clone(), buffer)?,
                _ => numbers.read_rows(place.rows.clone(), buffer)?,
            }
            add(sum, place, buffer);
            Ok(buffer.len() as u64)
        })?;
        Ok(parts.into_iter().map(|(sum, _)| sum).collect())
    }

    /// Folds the positions of all pieces into partial results; `add` returns how many numbers it read.
    pub fn visit<T: Send>(
        &self,
        progress: &dyn Progress,
        start: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, &Place) -> Result<u64, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let parts = self.read.min(PARTIAL_SUMS);
        let bound = |part: u64| {
            (u128::from(part) * u128::from(self.read) / u128::from(parts.max(1))) as u64
        };
        let part = |part: u64| {
            let mut sum = start();
            for i in bound(part)..bound(part + 1) {
                let read = add(&mut sum, &self.place(i))?;
                progress.step(4 * read)?;
            }
            Ok(sum)
        };
        (0..parts).into_par_iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Of(u64, u64);

    impl Numbers for Of {
        fn rows(&self) -> u64 {
            self.0
        }

        fn columns(&self) -> u64 {
            self.1
        }

        fn block_len(&self) -> u64 {
            32
        }

        fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
            *out = columns.map(|column| (row * self.1 + column) as f32).collect();
            Ok(())
        }
    }

    fn sums(numbers: &Of, budget: u64) -> (bool, Vec<u64>) {
        let pieces = Pieces::of(numbers, 0..numbers.0, budget);
        let add = |sum: &mut u64, _: &Place, read: &[f32]| *sum += read.len() as u64;
        (pieces.is_all(), pieces.fold(numbers, &(), || 0, add).unwrap())
    }

    #[test]
    fn reads_all_once_or_a_sample() {
        assert_eq!(sums(&Of(3, 4096), u64::MAX), (true, vec![4096; 3]));
        // A row of several pieces, the last of them short.
        assert_eq!(sums(&Of(1, MAX_PIECE + 32), u64::MAX), (true, vec![MAX_PIECE, 32]));
        // Short rows in one piece, the last of them with fewer.
        assert_eq!(sums(&Of(5000, 1), u64::MAX), (true, vec![4096, 904]));
        assert_eq!(sums(&Of(130, 64), u64::MAX), (true, vec![4096, 4096, 128]));
        let (exact, read) = sums(&Of(1000, 4096), 40_960);
        assert_eq!((exact, read.iter().sum()), (false, 40_960));
        assert_eq!(sums(&Of(0, 64), 640), (true, vec![]));
        // At least one piece.
        assert_eq!(sums(&Of(9, 4096), 0), (false, vec![4096]));
    }

    #[test]
    fn sample_is_evenly_spread() {
        let numbers = Of(1000, 4096);
        let pieces = Pieces::of(&numbers, 0..1000, 40_960);
        let rows: Vec<_> = (0..10).map(|i| pieces.place(i).rows.start).collect();
        assert_eq!(rows, [50, 150, 250, 350, 450, 550, 650, 750, 850, 950]);
    }
}
