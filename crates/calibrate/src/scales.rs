//! Coordinate descent over the scales and offsets of a block with fixed values: each step picks the
//! representable scale with the smallest output error.

use gguf_quant::{BlockParams, QuantGrid};
use pulp::Simd;

use crate::lanes::{Lanes, ROWS, add_product, add_scaled, matmul, zip};
use crate::tile::Tile;

/// Maximum number of rounds over all scales.
const ROUNDS: usize = 4;

/// Number of representable scales tried on each side of the optimum, each with its best offset.
const NEIGHBOURS: usize = 2;

/// Fits scales and offsets of a block; for `slope` see `refine_block` in `gptq.rs`.
#[inline(always)]
pub(crate) fn fit<S: Simd>(tile: &mut Tile<'_, S>, block: usize, slope: &mut [Lanes]) {
    let (grid, objective) = (tile.grid, tile.objective);
    let (n, len, group) = (objective.n(), grid.len, grid.group);
    let start = block * len;
    let groups = len / group;
    // Two variables per group: its scale and its offset.
    let changes = 2 * groups;
    let has_offsets = !grid.offsets.is_empty();
    let mut matrix = vec![[0.0; ROWS]; changes * changes];
    let mut slopes = vec![[0.0; ROWS]; changes];
    let values = &tile.v[start..start + len];
    for (j, value) in values.iter().enumerate() {
        let row = &objective.matrix[(start + j) * n + start..][..len];
        let mine = 2 * (j / group);
        for (other, (row, values)) in row.chunks(group).zip(values.chunks(group)).enumerate() {
            let (mut scaled, mut ones) = ([0.0; ROWS], 0.0);
            for (square, value) in row.iter().zip(values) {
                add_scaled(tile.simd, &mut scaled, *square, value);
                ones += square;
            }
            add_product(&mut matrix[mine * changes + 2 * other], value, &scaled);
            if has_offsets {
                add_scaled(tile.simd, &mut matrix[mine * changes + 2 * other + 1], ones, value);
                add_scaled(tile.simd, &mut matrix[(mine + 1) * changes + 2 * other], 1.0, &scaled);
                add_scaled(
                    tile.simd,
                    &mut matrix[(mine + 1) * changes + 2 * other + 1],
                    ones,
                    &[1.0; ROWS],
                );
            }
        }
        add_product(&mut slopes[mine], value, &slope[j]);
        add_scaled(tile.simd, &mut slopes[mine + 1], 1.0, &slope[j]);
    }
    let mut moved = false;
    for (row, params) in tile.params[block].iter_mut().enumerate() {
        let matrix = matrix.iter().map(|lanes| lanes[row]).collect();
        let slopes = slopes.iter().map(|lanes| lanes[row]).collect();
        moved |= Fit { grid, matrix, slopes }.run(params);
    }
    if !moved {
        return;
    }
    let mut change = vec![[0.0; ROWS]; len];
    for (place, change) in change.iter_mut().enumerate() {
        let (mut scale, mut offset) = ([0.0; ROWS], [0.0; ROWS]);
        for (row, params) in tile.params[block].iter().enumerate() {
            (scale[row], offset[row]) = grid.group_scale(params, place / group);
        }
        let old = tile.e[start + place];
        tile.set_error(start + place, &scale, &offset);
        *change = zip(&tile.e[start + place], &old, |new, old| new - old);
    }
    let mut added = vec![[0.0; ROWS]; len];
    let columns = start..start + len;
    matmul(tile.simd, (&objective.matrix, n), columns.clone(), columns, &change, &mut added);
    for (slope, added) in slope.iter_mut().zip(&added) {
        *slope = zip(slope, added, |slope, added| slope + added);
    }
}

/// Scales of one block of one row.
struct Fit<'f> {
    grid: &'f QuantGrid,
    /// Quadratic coefficients of the changes.
    matrix: Vec<f32>,
    /// Half of the error's negative gradient with respect to each change.
    slopes: Vec<f32>,
}

impl Fit<'_> {
    /// Runs the descent; returns whether any scale changed.
    fn run(mut self, params: &mut BlockParams) -> bool {
        if !params.d.is_finite() || !params.dmin.is_finite() {
            return false;
        }
        let mut ever = false;
        for _ in 0..ROUNDS {
            let mut moved = false;
            if self.grid.has_group_scales() && params.d != 0.0 {
                for group in 0..params.scales.len() {
                    moved |= self.try_group_scale(params, group);
                }
            }
            if self.grid.has_block_scale() {
                let steps = params.scales.iter().map(|scale| self.grid.scales[usize::from(*scale)]);
                moved |= self.try_block_scale(0, steps.collect(), &mut params.d);
            }
            if !self.grid.offsets.is_empty() {
                let steps = params.offsets.iter().map(|o| self.grid.offsets[usize::from(*o)]);
                moved |= self.try_block_scale(1, steps.collect(), &mut params.dmin);
            }
            if !moved {
                break;
            }
            ever = true;
        }
        ever
    }

    fn square(&self, a: usize, b: usize) -> f32 {
        self.matrix[a * self.slopes.len() + b]
    }

    fn change(&mut self, which: usize, by: f32) {
        if by != 0.0 {
            let len = self.slopes.len();
            let row = &self.matrix[which * len..][..len];
            self.slopes.iter_mut().zip(row).for_each(|(slope, square)| *slope -= square * by);
        }
    }

    /// Tries other scales for a group, each with its best offset.
    fn try_group_scale(&mut self, params: &mut BlockParams, group: usize) -> bool {
        let grid = self.grid;
        let (at, below) = (2 * group, 2 * group + 1);
        let (slope, slope_below) = (self.slopes[at], self.slopes[below]);
        let (square, both, square_below) =
            (self.square(at, at), self.square(at, below), self.square(below, below));
        let (scale, offset) = grid.group_scale(params, group);
        let has_offset = grid.has_group_offsets() && params.dmin != 0.0 && square_below > 0.0;
        let determinant = square * square_below - both * both;
        let desired = if has_offset && determinant > 1e-6 * square * square_below {
            (slope * square_below - slope_below * both) / determinant
        } else if square > 0.0 {
            slope / square
        } else {
            return false;
        };
        let place = nearest(&grid.scales, (scale + desired) / params.d);
        let mut best = None;
        let mut best_gain = 0.0;
        for number in
            place.saturating_sub(NEIGHBOURS)..grid.scales.len().min(place + NEIGHBOURS + 1)
        {
            let by = params.d * grid.scales[number] - scale;
            let (mut offset_number, mut offset_by) = (None, 0.0);
            if has_offset {
                let desired = offset + (slope_below - both * by) / square_below;
                let number = nearest(&grid.offsets, desired / params.dmin);
                (offset_number, offset_by) =
                    (Some(number), params.dmin * grid.offsets[number] - offset);
            }
            let gain = 2.0 * (by * slope + offset_by * slope_below)
                - (by * by * square + 2.0 * by * offset_by * both)
                - offset_by * offset_by * square_below;
            if gain > best_gain && (by != 0.0 || offset_by != 0.0) {
                best_gain = gain;
                best = Some((number, by, offset_number, offset_by));
            }
        }
        let Some((number, by, offset_number, offset_by)) = best else { return false };
        params.scales[group] = number as u8;
        if let Some(number) = offset_number {
            params.offsets[group] = number as u8;
        }
        self.change(at, by);
        self.change(below, offset_by);
        true
    }

    /// Tries another block scale, or with `part` 1 another block scale of the offsets; `steps` are
    /// the multiples of it in each group.
    fn try_block_scale(&mut self, part: usize, steps: Vec<f32>, scale: &mut f32) -> bool {
        let (mut slope, mut square) = (0.0, 0.0);
        for (group, step) in steps.iter().enumerate() {
            slope += step * self.slopes[2 * group + part];
            for (other, other_step) in steps.iter().enumerate() {
                square += step * other_step * self.square(2 * group + part, 2 * other + part);
            }
        }
        if square <= 0.0 || square.is_nan() {
            return false;
        }
        let new = half::f16::from_f32(*scale + slope / square).to_f32();
        let by = new - *scale;
        if !new.is_finite() || by == 0.0 || 2.0 * by * slope - by * by * square <= 0.0 {
            return false;
        }
        *scale = new;
        for (group, step) in steps.iter().enumerate() {
            self.change(2 * group + part, by * step);
        }
        true
    }
}

/// Returns the index of the nearest of ascending numbers.
fn nearest(all: &[f32], desired: f32) -> usize {
    let above = all.partition_point(|number| *number < desired);
    match above.checked_sub(1) {
        Some(below) if above == all.len() || desired - all[below] < all[above] - desired => below,
        _ => above,
    }
}
