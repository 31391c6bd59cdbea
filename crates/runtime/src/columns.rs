//! Disjoint columns of a matrix, for tasks that write them in parallel. Slices cannot express them.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::slice;

use rayon::prelude::*;

use crate::prefetch::prefetch;
use crate::value::Value;

/// Exclusive access to some columns of all rows of a matrix.
pub(crate) struct Columns<'v> {
    /// First column of the first row.
    start: *mut f32,
    rows: usize,
    /// Distance from a row to the next.
    stride: usize,
    len: usize,
    of: PhantomData<&'v mut [f32]>,
}

// SAFETY: the access is exclusive, like that of a mutable slice, which may be sent.
unsafe impl Send for Columns<'_> {}

impl Columns<'_> {
    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Prefetches the columns of a row, if there is such a row.
    #[inline(always)]
    pub fn prefetch(&self, row: usize) {
        for line in (0..self.len).step_by(16) {
            prefetch(self.start.wrapping_add(row * self.stride + line));
        }
    }

    /// Returns the columns of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows);
        // SAFETY: `columns` made `self` of a matrix with `rows` rows that have these columns, and made no other access to
        // them. `self` stays borrowed while the slice lives.
        unsafe { slice::from_raw_parts_mut(self.start.add(row * self.stride), self.len) }
    }

    /// Writes the columns, given row by row.
    pub fn write(&mut self, data: &[f32]) {
        for (row, data) in data.chunks_exact(self.len).enumerate() {
            self.row(row).copy_from_slice(data);
        }
    }
}

/// Splits a matrix into groups of `len` columns; the last group may have fewer.
pub(crate) fn columns(
    matrix: &mut Value,
    len: usize,
) -> impl IndexedParallelIterator<Item = Columns<'_>> {
    let (rows, stride) = (matrix.rows, matrix.width);
    assert!(matrix.data.len() >= rows * stride && len > 0);
    let start = matrix.data.as_mut_ptr();
    // The groups are disjoint, and the matrix stays borrowed while they live.
    let groups = (0..stride).step_by(len).map(|first| {
        let (start, len) = (start.wrapping_add(first), len.min(stride - first));
        Columns { start, rows, stride, len, of: PhantomData }
    });
    // Groups of one item: a thread that took several would keep the others waiting at the end.
    groups.collect::<Vec<_>>().into_par_iter().with_max_len(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_disjoint_and_complete() {
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
