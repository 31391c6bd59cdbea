//! Columns of a matrix that tasks write side by side: slices cannot say what is theirs.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::slice;

use rayon::prelude::*;

use crate::prefetch::prefetch;
use crate::value::Value;

/// Some columns of all rows of a matrix, which nobody else writes or reads meanwhile.
pub(crate) struct Columns<'v> {
    /// The first of the first row.
    start: *mut f32,
    rows: usize,
    /// From a row to the next.
    stride: usize,
    len: usize,
    of: PhantomData<&'v mut [f32]>,
}

// SAFETY: it is as exclusive slices of its columns are, which may be sent.
unsafe impl Send for Columns<'_> {}

impl Columns<'_> {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Brings their numbers in a row nearer, if there is such a row.
    #[inline(always)]
    pub fn ask_for(&self, row: usize) {
        for line in (0..self.len).step_by(16) {
            prefetch(self.start.wrapping_add(row * self.stride + line));
        }
    }

    /// Their numbers in a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows);
        // SAFETY: `columns` made it of a matrix of so many rows, each of which has these columns, and gave them
        // to nobody else; as long as the slice lives this is borrowed.
        unsafe { slice::from_raw_parts_mut(self.start.add(row * self.stride), self.len) }
    }

    /// Puts numbers there that stand row by row.
    pub fn put(&mut self, numbers: &[f32]) {
        for (row, numbers) in numbers.chunks_exact(self.len).enumerate() {
            self.row(row).copy_from_slice(numbers);
        }
    }
}

/// All columns of a matrix, `len` at a time; the last ones may be fewer.
pub(crate) fn columns(
    matrix: &mut Value,
    len: usize,
) -> impl IndexedParallelIterator<Item = Columns<'_>> {
    let (rows, stride) = (matrix.rows, matrix.width);
    assert!(matrix.data.len() >= rows * stride && len > 0);
    let start = matrix.data.as_mut_ptr();
    // No two have a column in common, and all live as long as the matrix is borrowed.
    let all = (0..stride).step_by(len).map(|first| {
        let (start, len) = (start.wrapping_add(first), len.min(stride - first));
        Columns { start, rows, stride, len, of: PhantomData }
    });
    // Each may go to another thread: several that one thread had begun would keep the others waiting at the end.
    all.collect::<Vec<_>>().into_par_iter().with_max_len(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_columns_of_one_task() {
        for (rows, width, len) in [(3, 10, 4), (1, 5, 5), (4, 3, 8), (0, 3, 2), (2, 0, 1)] {
            let mut matrix = Value::zeros(rows, width, Vec::new());
            columns(&mut matrix, len).enumerate().for_each(|(task, mut columns)| {
                for row in 0..rows {
                    for (n, number) in columns.row(row).iter_mut().enumerate() {
                        *number += (row * width + task * len + n + 1) as f32;
                    }
                }
            });
            let numbers: Vec<_> = (1..=rows * width).map(|number| number as f32).collect();
            assert_eq!(matrix.data, numbers, "{rows} {width} {len}");
        }
    }

    #[test]
    #[should_panic(expected = "row < self.rows")]
    fn a_row_beyond_the_last_is_refused() {
        let mut matrix = Value::zeros(2, 3, Vec::new());
        columns(&mut matrix, 3).for_each(|mut columns| columns.row(2).fill(1.0));
    }
}
