//! Loops over the rows of an output.

use rayon::prelude::*;

use crate::value::Value;

/// Number of elements below which a loop stays on one thread.
pub(super) const MIN_PARALLEL: usize = 1 << 14;

/// Calls `work` with the number and the elements of each row, on all threads if there are enough elements.
pub(super) fn each_row(out: &mut Value, work: impl Fn(usize, &mut [f32]) + Sync) {
    each_row_of(out, &work);
}

/// The parallel loop, compiled once for all operations.
fn each_row_of(out: &mut Value, work: &(dyn Fn(usize, &mut [f32]) + Sync)) {
    let width = out.width.max(1);
    if out.data.len() < MIN_PARALLEL || out.rows == 1 {
        out.data.chunks_exact_mut(width).enumerate().for_each(|(row, out)| work(row, out));
    } else {
        let rows = out.data.par_chunks_exact_mut(width).with_min_len(4).enumerate();
        rows.for_each(|(row, out)| work(row, out));
    }
}
