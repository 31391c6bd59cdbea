//! A tile: the state of some rows of a matrix while they are quantized.

use gguf_quant::{BlockParams, QuantGrid, SignPattern};
use pulp::Simd;

use crate::codebook::{Codebook, CodebookChoice};
use crate::lanes::{Lanes, ROWS, lanes_of, zip};
use crate::levels::Levels;
use crate::objective::Objective;

/// Some rows of a matrix: each column holds one number per row.
pub(crate) struct Tile<'t, S> {
    pub simd: S,
    pub grid: &'t QuantGrid,
    pub levels: &'t Levels,
    pub codebook: Option<&'t Codebook>,
    pub objective: &'t Objective,
    pub rows: usize,
    /// Wanted weights.
    pub w: Vec<Lanes>,
    /// Remaining errors: wanted minus quantized weights.
    pub e: Vec<Lanes>,
    /// Quantized values of all columns, before scale and offset.
    pub v: Vec<Lanes>,
    /// Codebook index of each unit.
    entries: Vec<[u16; ROWS]>,
    /// Signs of each eight columns.
    signs: Vec<[u8; ROWS]>,
    /// Scales of each block, per row.
    pub params: Vec<Vec<BlockParams>>,
}

/// Scale, offset, and inverse of the scale (0 for a scale of 0).
pub(crate) type Scaled = (Lanes, Lanes, Lanes);

impl<'t, S: Simd> Tile<'t, S> {
    #[inline(always)]
    pub fn new(
        simd: S,
        grid: &'t QuantGrid,
        levels: &'t Levels,
        codebook: Option<&'t Codebook>,
        objective: &'t Objective,
        rows: &[f32],
    ) -> Self {
        let n = objective.n();
        let zeros = vec![[0.0; ROWS]; n];
        Self {
            simd,
            grid,
            levels,
            codebook,
            objective,
            rows: rows.len() / n,
            w: lanes_of(rows, n),
            e: zeros.clone(),
            v: zeros,
            entries: vec![[0; ROWS]; n / grid.unit],
            signs: vec![[0; ROWS]; if grid.signs == SignPattern::InCodebook { 0 } else { n / 8 }],
            params: Vec::new(),
        }
    }

    #[inline(always)]
    pub fn scaled(&self, block: usize, group: usize) -> Scaled {
        let (mut scale, mut offset, mut inverse) = ([0.0; ROWS], [0.0; ROWS], [0.0; ROWS]);
        for (row, params) in self.params[block].iter().enumerate() {
            (scale[row], offset[row]) = self.grid.group_scale(params, group);
            // A denormal scale counts as 0.
            let is_small = scale[row].abs() < f32::MIN_POSITIVE;
            inverse[row] = if is_small { 0.0 } else { 1.0 / scale[row] };
        }
        (scale, offset, inverse)
    }

    /// Sets a column to the levels nearest to `desired`.
    #[inline(always)]
    pub fn set_level(&mut self, column: usize, desired: &Lanes, (scale, offset, inverse): &Scaled) {
        let x = zip(desired, offset, |desired, offset| desired - offset);
        let (indices, values) = self.levels.nearest(&zip(&x, inverse, |x, inverse| x * inverse));
        self.v[column] = values;
        self.set_error(column, scale, offset);
        self.entries[column] = indices.map(|index| index as u16);
    }

    /// Returns the shift of the values of eight columns, and the rows in which it is negative.
    #[inline(always)]
    pub fn down(&self, column: usize) -> Option<(f32, [bool; ROWS])> {
        let shift = self.grid.shift?;
        let params = &self.params[column / self.grid.len];
        let run = column % self.grid.len / shift.len;
        Some((shift.by, std::array::from_fn(|row| params[row].down[run])))
    }

    /// Returns the signs of eight columns; 0 for types without separate signs.
    #[inline(always)]
    pub fn signs_at(&self, column: usize) -> [u8; ROWS] {
        self.signs.get(column / 8).copied().unwrap_or([0; ROWS])
    }

    /// Sets eight columns to codebook entries.
    #[inline(always)]
    pub fn set_entries(
        &mut self,
        column: usize,
        found: &CodebookChoice,
        (scale, offset, _): &Scaled,
    ) {
        self.v[column..column + 8].copy_from_slice(&found.values);
        let entries = &mut self.entries[column / self.grid.unit..(column + 8) / self.grid.unit];
        entries.iter_mut().zip(&found.entries).for_each(|(entry, found)| *entry = *found);
        if let Some(signs) = self.signs.get_mut(column / 8) {
            *signs = found.signs;
        }
        for column in column..column + 8 {
            self.set_error(column, scale, offset);
        }
    }

    /// Recomputes the error of a column.
    #[inline(always)]
    pub fn set_error(&mut self, column: usize, scale: &Lanes, offset: &Lanes) {
        let weight = zip(&zip(scale, &self.v[column], |scale, v| scale * v), offset, |x, o| x + o);
        self.e[column] = zip(&self.w[column], &weight, |w, weight| w - weight);
    }

    /// Packs the rows.
    pub fn write(&self, out: &mut [u8]) {
        let QuantGrid { len, bytes, unit, .. } = *self.grid;
        let blocks = self.params.len();
        for (row, out) in out.chunks_exact_mut(blocks * bytes).enumerate().take(self.rows) {
            for (block, out) in out.chunks_exact_mut(bytes).enumerate() {
                let mut params = self.params[block][row].clone();
                let entries = &self.entries[block * len / unit..(block + 1) * len / unit];
                params.values = entries.iter().map(|entry| entry[row]).collect();
                if !self.signs.is_empty() {
                    let signs = &self.signs[block * len / 8..(block + 1) * len / 8];
                    params.signs = signs.iter().map(|signs| signs[row]).collect();
                }
                self.grid.pack(&params, out);
            }
        }
    }
}
