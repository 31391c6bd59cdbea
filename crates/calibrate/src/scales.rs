//! Scales and offsets of a block for values that stand: those with the least error of products, found one after the
//! other, by steps that the type allows.

use gguf_quant::{Form, Numbers};

use crate::lanes::{Lanes, ROWS, add_product, add_scaled, product, zip};
use crate::rounding::Tile;

/// How often all scales are gone through at most.
const ROUNDS: usize = 4;

/// Numbers of scales around the best one that are tried, each with the best offset for it.
const TRIED: usize = 2;

/// Fits scales and offsets of a block; `slope` is what [`Tile::improve`] says.
#[inline(always)]
pub(crate) fn fit(tile: &mut Tile<'_>, block: usize, slope: &mut [Lanes]) {
    let (form, target) = (tile.form, tile.target);
    let (n, len, group) = (target.n(), form.len, form.group);
    let start = block * len;
    let groups = len / group;
    // Of each group the change of its scale, then that of its offset.
    let changes = 2 * groups;
    let has_offsets = !form.offsets.is_empty();
    let mut squares = vec![[0.0; ROWS]; changes * changes];
    let mut slopes = vec![[0.0; ROWS]; changes];
    let values = &tile.v[start..start + len];
    for (j, value) in values.iter().enumerate() {
        let row = &target.squares[(start + j) * n + start..][..len];
        let mine = 2 * (j / group);
        for (other, (row, values)) in row.chunks(group).zip(values.chunks(group)).enumerate() {
            let (mut scaled, mut ones) = ([0.0; ROWS], 0.0);
            for (square, value) in row.iter().zip(values) {
                add_scaled(&mut scaled, *square, value);
                ones += square;
            }
            add_product(&mut squares[mine * changes + 2 * other], value, &scaled);
            if has_offsets {
                add_scaled(&mut squares[mine * changes + 2 * other + 1], ones, value);
                add_scaled(&mut squares[(mine + 1) * changes + 2 * other], 1.0, &scaled);
                add_scaled(&mut squares[(mine + 1) * changes + 2 * other + 1], ones, &[1.0; ROWS]);
            }
        }
        add_product(&mut slopes[mine], value, &slope[j]);
        add_scaled(&mut slopes[mine + 1], 1.0, &slope[j]);
    }
    let mut moved = false;
    for (row, numbers) in tile.numbers[block].iter_mut().enumerate() {
        let squares = squares.iter().map(|lanes| lanes[row]).collect();
        let slopes = slopes.iter().map(|lanes| lanes[row]).collect();
        moved |= Fit { form, squares, slopes }.run(numbers);
    }
    if !moved {
        return;
    }
    let mut change = vec![[0.0; ROWS]; len];
    for (place, change) in change.iter_mut().enumerate() {
        let (mut scale, mut offset) = ([0.0; ROWS], [0.0; ROWS]);
        for (row, numbers) in tile.numbers[block].iter().enumerate() {
            (scale[row], offset[row]) = form.of_group(numbers, place / group);
        }
        let old = tile.e[start + place];
        tile.set_error(start + place, &scale, &offset);
        *change = zip(&tile.e[start + place], &old, |new, old| new - old);
    }
    let mut added = vec![[0.0; ROWS]; len];
    let columns = start..start + len;
    product((&target.squares, n), columns.clone(), columns, &change, &mut added);
    for (slope, added) in slope.iter_mut().zip(&added) {
        *slope = zip(slope, added, |slope, added| slope + added);
    }
}

/// The scales of a block of one row.
struct Fit<'f> {
    form: &'f Form,
    /// What changes cost together.
    squares: Vec<f32>,
    /// Half of what the error falls by with each change alone.
    slopes: Vec<f32>,
}

impl Fit<'_> {
    /// Whether anything became better.
    fn run(mut self, numbers: &mut Numbers) -> bool {
        if !numbers.d.is_finite() || !numbers.dmin.is_finite() {
            return false;
        }
        let mut ever = false;
        for _ in 0..ROUNDS {
            let mut moved = false;
            if self.form.scales_groups() && numbers.d != 0.0 {
                for group in 0..numbers.scales.len() {
                    moved |= self.of_group(numbers, group);
                }
            }
            if self.form.scales_blocks() {
                let steps =
                    numbers.scales.iter().map(|scale| self.form.scales[usize::from(*scale)]);
                moved |= self.of_block(0, steps.collect(), &mut numbers.d);
            }
            if !self.form.offsets.is_empty() {
                let steps = numbers.offsets.iter().map(|o| self.form.offsets[usize::from(*o)]);
                moved |= self.of_block(1, steps.collect(), &mut numbers.dmin);
            }
            if !moved {
                break;
            }
            ever = true;
        }
        ever
    }

    fn square(&self, a: usize, b: usize) -> f32 {
        self.squares[a * self.slopes.len() + b]
    }

    fn change(&mut self, which: usize, by: f32) {
        if by != 0.0 {
            let len = self.slopes.len();
            let row = &self.squares[which * len..][..len];
            self.slopes.iter_mut().zip(row).for_each(|(slope, square)| *slope -= square * by);
        }
    }

    /// Another scale for a group, with the offset that suits it.
    fn of_group(&mut self, numbers: &mut Numbers, group: usize) -> bool {
        let form = self.form;
        let (at, below) = (2 * group, 2 * group + 1);
        let (slope, slope_below) = (self.slopes[at], self.slopes[below]);
        let (square, both, square_below) =
            (self.square(at, at), self.square(at, below), self.square(below, below));
        let (scale, offset) = form.of_group(numbers, group);
        let has_offset = form.offsets_groups() && numbers.dmin != 0.0 && square_below > 0.0;
        let determinant = square * square_below - both * both;
        let wanted = if has_offset && determinant > 1e-6 * square * square_below {
            (slope * square_below - slope_below * both) / determinant
        } else if square > 0.0 {
            slope / square
        } else {
            return false;
        };
        let place = nearest(&form.scales, (scale + wanted) / numbers.d);
        let mut best = None;
        let mut most = 0.0;
        for number in place.saturating_sub(TRIED)..form.scales.len().min(place + TRIED + 1) {
            let by = numbers.d * form.scales[number] - scale;
            let (mut offset_number, mut offset_by) = (None, 0.0);
            if has_offset {
                let wanted = offset + (slope_below - both * by) / square_below;
                let number = nearest(&form.offsets, wanted / numbers.dmin);
                (offset_number, offset_by) =
                    (Some(number), numbers.dmin * form.offsets[number] - offset);
            }
            let gain = 2.0 * (by * slope + offset_by * slope_below)
                - (by * by * square + 2.0 * by * offset_by * both)
                - offset_by * offset_by * square_below;
            if gain > most && (by != 0.0 || offset_by != 0.0) {
                most = gain;
                best = Some((number, by, offset_number, offset_by));
            }
        }
        let Some((number, by, offset_number, offset_by)) = best else { return false };
        numbers.scales[group] = number as u8;
        if let Some(number) = offset_number {
            numbers.offsets[group] = number as u8;
        }
        self.change(at, by);
        self.change(below, offset_by);
        true
    }

    /// Another scale for the block, or (`part` 1) for its offsets, of which groups have so many each.
    fn of_block(&mut self, part: usize, steps: Vec<f32>, scale: &mut f32) -> bool {
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

/// The number of the nearest of ascending numbers.
fn nearest(all: &[f32], wanted: f32) -> usize {
    let above = all.partition_point(|number| *number < wanted);
    match above.checked_sub(1) {
        Some(below) if above == all.len() || wanted - all[below] < all[above] - wanted => below,
        _ => above,
    }
}
