//! All numbers of a matrix, or a sample of them, in pieces of rows that threads share out.

use std::ops::Range;

use rayon::prelude::*;

use super::numbers::{Numbers, TOGETHER};
use gguf::Error;
use gguf_store::Progress;

/// The longest piece: what a thread reads at a time.
const LONGEST: u64 = 256 << 10;

/// Parts that pieces are put together to. Sums are added in their order, whatever threads there are.
const PARTS: u64 = 64;

/// Pieces of rows, all of them or evenly spread ones.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    rows: Range<u64>,
    columns: u64,
    /// Numbers of a piece; the last one of a row may be shorter.
    len: u64,
    /// Rows of a piece, if it has whole ones; the last piece may have fewer.
    together: u64,
    /// How many there are, and how many of these are read.
    there: u64,
    read: u64,
}

/// Where a piece stands: some columns of a row, or several rows with all their columns.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub rows: Range<u64>,
    pub columns: Range<u64>,
}

impl Pieces {
    /// Those of `rows` that have at most `budget` numbers together, but at least one piece.
    pub fn of(numbers: &dyn Numbers, rows: Range<u64>, budget: u64) -> Self {
        let (columns, block) = (numbers.columns(), numbers.block_len().max(1));
        let len = columns.min((LONGEST / block).max(1) * block).max(1);
        let together = (TOGETHER / columns.max(1)).max(1);
        let count = rows.end - rows.start;
        let there = count.div_ceil(together).saturating_mul(columns.div_ceil(len));
        let read = (budget / (len * together)).clamp(1, there.max(1)).min(there);
        Self { rows, columns, len, together, there, read }
    }

    /// Whether all of them are read.
    pub fn is_all(&self) -> bool {
        self.read == self.there
    }

    /// Bytes of the numbers that are read, as progress counts them.
    pub fn bytes(&self) -> u64 {
        self.read.saturating_mul(self.len * self.together).saturating_mul(4)
    }

    /// The piece with the number `i` of those that are read.
    fn place(&self, i: u64) -> Place {
        // In the middle of its share.
        let number = match self.is_all() {
            true => i,
            false => {
                let middle = (2 * u128::from(i) + 1) * u128::from(self.there);
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

    /// Goes over all numbers, each part of the pieces with a value of its own, and gives these in order.
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

    /// Goes over the places of all pieces; `add` says how many numbers it read there.
    pub fn visit<T: Send>(
        &self,
        progress: &dyn Progress,
        start: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, &Place) -> Result<u64, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let parts = self.read.min(PARTS);
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
    fn all_is_read_once_or_a_sample_of_it() {
        assert_eq!(sums(&Of(3, 4096), u64::MAX), (true, vec![4096; 3]));
        // A row of several pieces, the last of them short.
        assert_eq!(sums(&Of(1, LONGEST + 32), u64::MAX), (true, vec![LONGEST, 32]));
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
    fn a_sample_is_evenly_spread() {
        let numbers = Of(1000, 4096);
        let pieces = Pieces::of(&numbers, 0..1000, 40_960);
        let rows: Vec<_> = (0..10).map(|i| pieces.place(i).rows.start).collect();
        assert_eq!(rows, [50, 150, 250, 350, 450, 550, 650, 750, 850, 950]);
    }
}
