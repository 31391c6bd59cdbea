//! Quantized activations of several tokens, interleaved, so that a kernel reads them from one place.

/// Maximum number of rows that are interleaved.
pub(super) const TOGETHER: usize = 8;

/// Interleaved rows. Within a panel, each [`TOGETHER`] rows are interleaved, and the rest as [`interleaved_rows`] rows,
/// of which those that do not exist are 0.
#[derive(Default)]
pub(super) struct Interleaved {
    lens: Lens,
    /// Number of rows, with those that do not exist.
    rows: usize,
    /// `[column / 16][row][column % 16]`.
    levels: Vec<i8>,
    /// `[block][row]`.
    scales: Vec<f32>,
    /// `[group][row]`, and `[group / 2][row][group % 2]` for blocks of 256.
    sums: Vec<i16>,
}

/// Numbers of columns.
#[derive(Clone, Copy, Default)]
pub(super) struct Lens {
    pub panel: usize,
    pub block: usize,
    pub group: usize,
}

/// Some columns of `R` rows, in the order of [`Interleaved`].
pub(super) struct SomeRows<'r, const R: usize> {
    pub levels: &'r [[[i8; 16]; R]],
    pub scales: &'r [[f32; R]],
    pub sums: &'r [i16],
}

impl Interleaved {
    /// Interleaves rows whose panels follow each other: each has some columns of all rows.
    pub fn new(rows: usize, lens: Lens, levels: &[i8], scales: &[f32], sums: &[i16]) -> Self {
        let Lens { panel, block, group } = lens;
        Self {
            lens,
            rows: all_rows(rows),
            levels: interleave(levels, rows, panel, 16),
            scales: interleave(scales, rows, panel / block, 1),
            sums: interleave(sums, rows, panel / group, if block == 256 { 2 } else { 1 }),
        }
    }

    /// Returns some columns of [`interleaved_rows`] rows from `first` on; `column` begins a panel.
    #[inline(always)]
    pub fn some_rows<const R: usize>(
        &self,
        first: usize,
        column: usize,
        len: usize,
    ) -> SomeRows<'_, R> {
        let (of_scales, of_sums) = (self.lens.block.ilog2(), self.lens.group.ilog2());
        let (start, count) = (column * self.rows + first * len, R * len);
        SomeRows {
            levels: self.levels[start..][..count].as_chunks().0.as_chunks().0,
            scales: self.scales[start >> of_scales..][..count >> of_scales].as_chunks().0,
            sums: &self.sums[start >> of_sums..][..count >> of_sums],
        }
    }
}

/// Returns the number of rows that are interleaved if `left` are left.
pub(super) fn interleaved_rows(left: usize) -> usize {
    left.next_power_of_two().min(TOGETHER)
}

/// Returns the number of rows after interleaving.
fn all_rows(rows: usize) -> usize {
    (0..rows).step_by(TOGETHER).map(|first| interleaved_rows(rows - first)).sum()
}

/// Interleaves rows within panels of `panel` items, of which `together` remain together.
fn interleave<X: Copy + Default>(all: &[X], rows: usize, panel: usize, together: usize) -> Vec<X> {
    let (width, rows_after) = (all.len() / rows, all_rows(rows));
    let mut result = vec![X::default(); rows_after * width];
    let panels = all.chunks(panel * rows).zip(result.chunks_mut(panel * rows_after));
    for (from, to) in panels {
        let width = from.len() / rows;
        let groups = from.chunks(TOGETHER * width).zip(to.chunks_mut(TOGETHER * width));
        for (from, to) in groups {
            let step = to.len() / width * together;
            for (row, from) in from.chunks_exact(width).enumerate() {
                let parts = to.chunks_exact_mut(step).zip(from.chunks_exact(together));
                for (to, from) in parts {
                    to[row * together..][..together].copy_from_slice(from);
                }
            }
        }
    }
    result
}
