//! Step functions, evaluated with two table lookups: for example rounding to the nearest codebook
//! value.

#[cfg(target_arch = "x86_64")]
use std::any::Any;

#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};
use pulp::{Simd, bytemuck};

use super::{Lanes, ROUND};

/// Width of the cells that partition the input, chosen so that no cell has two thresholds.
const WIDTH: f32 = 10.0;

/// Number of cells; their centres are multiples of the width, starting at `-CELLS / 2`.
const CELLS: usize = 32;

/// A piecewise constant function; a threshold belongs to the step above it.
pub(crate) struct Steps {
    /// Threshold in each cell; infinity if it has none.
    borders: [f32; CELLS],
    /// Function value at the start of each cell.
    values: [f32; CELLS],
}

impl Steps {
    /// Builds the function from ascending thresholds, the values below each of them, and the value
    /// above the last.
    pub const fn new<const N: usize>(borders: &[f32; N], below: &[f32; N], above: f32) -> Self {
        let mut steps = Self { borders: [f32::INFINITY; CELLS], values: [above; CELLS] };
        // `for` is not available in constant functions.
        let (mut cell, mut n) = (0, 0);
        while cell < CELLS {
            let start = (cell as f32 - (CELLS / 2) as f32 - 0.5) * WIDTH;
            if n < N {
                steps.values[cell] = below[n];
                // Rounding near a threshold must not select the neighbouring cell.
                assert!(borders[n] > start + 0.1);
                if borders[n] < start + WIDTH {
                    assert!(borders[n] < start + WIDTH - 0.1);
                    steps.borders[cell] = borders[n];
                    n += 1;
                }
            }
            cell += 1;
        }
        steps
    }

    /// Evaluates the function at `v` for magnitudes up to 150; the result is unspecified elsewhere
    /// and for NaN.
    #[inline(always)]
    pub fn at<S: Simd, const U: usize>(&self, v: Lanes<S, U>) -> Lanes<S, U> {
        v.map(
            #[inline(always)]
            |simd, v| {
                // Index of the cell, in the low bits of the mantissa.
                let middle = simd.splat_f32s(ROUND + (CELLS / 2) as f32);
                let cell = simd.add_f32s(simd.mul_f32s(v, simd.splat_f32s(1.0 / WIDTH)), middle);
                let cell = simd.transmute_u32s_f32s(cell);
                let below = simd.less_than_f32s(v, lookup(simd, &self.borders, cell));
                // Above its threshold, a cell has the start value of the next cell.
                let next = simd.add_u32s(cell, simd.splat_u32s(1));
                lookup(simd, &self.values, simd.select_u32s(below, cell, next))
            },
        )
    }
}

/// Looks up the low bits of `index` in a table.
#[inline(always)]
fn lookup<S: Simd>(simd: S, table: &[f32; CELLS], index: S::u32s) -> S::f32s {
    #[cfg(target_arch = "x86_64")]
    {
        // The compiler resolves this downcast.
        let instructions: &dyn Any = &simd;
        if let Some(simd) = instructions.downcast_ref::<V4>() {
            let [low, high]: [pulp::f32x16; 2] = pulp::cast(*table);
            let index: pulp::u32x16 = bytemuck::cast(index);
            let (low, high, index) = (pulp::cast(low), pulp::cast(high), pulp::cast(index));
            let found = simd.avx512f._mm512_permutex2var_ps(low, index, high);
            return bytemuck::cast::<pulp::f32x16, _>(pulp::cast(found));
        }
        if let Some(simd) = instructions.downcast_ref::<V3>() {
            let index: pulp::u32x8 = bytemuck::cast(index);
            let index = pulp::cast(index);
            let [a, b, c, d]: [pulp::f32x8; CELLS / 8] = pulp::cast(*table);
            let a = simd.avx2._mm256_permutevar8x32_ps(pulp::cast(a), index);
            let b = simd.avx2._mm256_permutevar8x32_ps(pulp::cast(b), index);
            let c = simd.avx2._mm256_permutevar8x32_ps(pulp::cast(c), index);
            let d = simd.avx2._mm256_permutevar8x32_ps(pulp::cast(d), index);
            // Blending goes by sign bits, so bits 3 and 4 of the index are shifted there.
            let upper = pulp::cast(simd.avx2._mm256_slli_epi32::<28>(index));
            let low = simd.avx._mm256_blendv_ps(a, b, upper);
            let high = simd.avx._mm256_blendv_ps(c, d, upper);
            let upper = pulp::cast(simd.avx2._mm256_slli_epi32::<27>(index));
            let found = simd.avx._mm256_blendv_ps(low, high, upper);
            return bytemuck::cast::<pulp::f32x8, _>(pulp::cast(found));
        }
    }
    let mut found = simd.splat_f32s(0.0);
    let indices = bytemuck::cast_slice::<_, u32>(std::slice::from_ref(&index));
    let lanes = bytemuck::cast_slice_mut::<_, f32>(std::slice::from_mut(&mut found));
    for (found, index) in lanes.iter_mut().zip(indices) {
        *found = table[*index as usize % CELLS];
    }
    found
}
